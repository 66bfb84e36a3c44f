"""What each side says it can do.

A marker object that is there means yes, even when it is empty; one that is absent or null means no. Flags
count only as a literal `true`.
"""

from thinkwell_acp.schema._base import Extensible

__all__ = (
    "AgentAuthCapabilities",
    "AgentCapabilities",
    "AuthCapabilities",
    "BooleanConfigOptionCapabilities",
    "ClientCapabilities",
    "ClientSessionCapabilities",
    "CompactionCapabilities",
    "ElicitationCapabilities",
    "ElicitationFormCapabilities",
    "ElicitationUrlCapabilities",
    "FileSystemCapabilities",
    "LogoutCapabilities",
    "McpCapabilities",
    "PlanCapabilities",
    "PromptCapabilities",
    "ProvidersCapabilities",
    "SessionAdditionalDirectoriesCapabilities",
    "SessionCapabilities",
    "SessionCloseCapabilities",
    "SessionConfigOptionsCapabilities",
    "SessionDeleteCapabilities",
    "SessionForkCapabilities",
    "SessionListCapabilities",
    "SessionResumeCapabilities",
    "SessionSystemPromptCapabilities",
    "SessionSystemPromptModeCapabilities",
    "SessionSystemPromptOverrideCapabilities",
)


class FileSystemCapabilities(Extensible, frozen=True, kw_only=True):
    """Which of `fs/*` the client serves."""

    read_text_file: bool = False
    write_text_file: bool = False


class AuthCapabilities(Extensible, frozen=True, kw_only=True):
    """Which logins the client can run."""

    terminal: bool = False


class BooleanConfigOptionCapabilities(Extensible, frozen=True, kw_only=True):
    """The client knows config options that are on or off."""


class SessionConfigOptionsCapabilities(Extensible, frozen=True, kw_only=True):
    """Which types of config option the client knows beside the select."""

    boolean: BooleanConfigOptionCapabilities | None = None


class CompactionCapabilities(Extensible, frozen=True, kw_only=True):
    """The client takes `compaction_update` and `compaction_summary_chunk` (unstable)."""


class ClientSessionCapabilities(Extensible, frozen=True, kw_only=True):
    """What the client can do within a session."""

    config_options: SessionConfigOptionsCapabilities | None = None
    compaction: CompactionCapabilities | None = None


class ElicitationFormCapabilities(Extensible, frozen=True, kw_only=True):
    """The client can put a form to the user."""


class ElicitationUrlCapabilities(Extensible, frozen=True, kw_only=True):
    """The client can send the user to a web page."""


class ElicitationCapabilities(Extensible, frozen=True, kw_only=True):
    """How the client can ask the user; with neither mode it cannot."""

    form: ElicitationFormCapabilities | None = None
    url: ElicitationUrlCapabilities | None = None


class PlanCapabilities(Extensible, frozen=True, kw_only=True):
    """The client takes `plan_update` and `plan_removed` (unstable)."""


class ClientCapabilities(Extensible, frozen=True, kw_only=True):
    """What the client can do for the agent.

    Attributes:
        terminal: all of `terminal/*`.
    """

    fs: FileSystemCapabilities = FileSystemCapabilities()
    terminal: bool = False
    session: ClientSessionCapabilities | None = None
    plan: PlanCapabilities | None = None
    auth: AuthCapabilities = AuthCapabilities()
    elicitation: ElicitationCapabilities | None = None


class PromptCapabilities(Extensible, frozen=True, kw_only=True):
    """Which content blocks the agent takes in prompts beside text and links."""

    image: bool = False
    audio: bool = False
    embedded_context: bool = False


class McpCapabilities(Extensible, frozen=True, kw_only=True):
    """Which MCP servers the agent can reach beside those over stdio; `acp` is unstable."""

    http: bool = False
    sse: bool = False
    acp: bool = False


class SessionListCapabilities(Extensible, frozen=True, kw_only=True):
    """The agent serves `session/list`."""


class SessionDeleteCapabilities(Extensible, frozen=True, kw_only=True):
    """The agent serves `session/delete`."""


class SessionAdditionalDirectoriesCapabilities(Extensible, frozen=True, kw_only=True):
    """The agent takes `additionalDirectories`."""


class SessionForkCapabilities(Extensible, frozen=True, kw_only=True):
    """The agent serves `session/fork` (unstable)."""


class SessionResumeCapabilities(Extensible, frozen=True, kw_only=True):
    """The agent serves `session/resume`."""


class SessionCloseCapabilities(Extensible, frozen=True, kw_only=True):
    """The agent serves `session/close`."""


class SessionSystemPromptOverrideCapabilities(Extensible, frozen=True, kw_only=True):
    """The agent lets a client's system prompt replace its own instructions."""


class SessionSystemPromptModeCapabilities(Extensible, frozen=True, kw_only=True):
    """What the agent does with a client's system prompt beside appending it to its own instructions."""

    override: SessionSystemPromptOverrideCapabilities | None = None


class SessionSystemPromptCapabilities(Extensible, frozen=True, kw_only=True):
    """The agent takes `systemPrompt` when a session is opened."""

    mode: SessionSystemPromptModeCapabilities | None = None


class SessionCapabilities(Extensible, frozen=True, kw_only=True):
    """What the agent can do with sessions beside making them."""

    list: SessionListCapabilities | None = None
    delete: SessionDeleteCapabilities | None = None
    additional_directories: SessionAdditionalDirectoriesCapabilities | None = None
    fork: SessionForkCapabilities | None = None
    resume: SessionResumeCapabilities | None = None
    close: SessionCloseCapabilities | None = None
    system_prompt: SessionSystemPromptCapabilities | None = None


class ProvidersCapabilities(Extensible, frozen=True, kw_only=True):
    """The agent serves `providers/*` (unstable)."""


class LogoutCapabilities(Extensible, frozen=True, kw_only=True):
    """The agent serves `logout`."""


class AgentAuthCapabilities(Extensible, frozen=True, kw_only=True):
    """What the agent can do about logins."""

    logout: LogoutCapabilities | None = None


class AgentCapabilities(Extensible, frozen=True, kw_only=True):
    """What the agent can do for the client."""

    load_session: bool = False
    prompt_capabilities: PromptCapabilities = PromptCapabilities()
    mcp_capabilities: McpCapabilities = McpCapabilities()
    session_capabilities: SessionCapabilities = SessionCapabilities()
    auth: AgentAuthCapabilities = AgentAuthCapabilities()
    providers: ProvidersCapabilities | None = None
