"""The capabilities of each side.

A marker object that is present means yes, even when it is empty; one that is absent or null means no. Flags
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
    """The methods of `fs/*` that the client serves."""

    read_text_file: bool = False
    write_text_file: bool = False


class AuthCapabilities(Extensible, frozen=True, kw_only=True):
    """The logins that the client can run."""

    terminal: bool = False


class BooleanConfigOptionCapabilities(Extensible, frozen=True, kw_only=True):
    """The client supports config options that are on or off."""


class SessionConfigOptionsCapabilities(Extensible, frozen=True, kw_only=True):
    """The types of config options that the client supports besides the select."""

    boolean: BooleanConfigOptionCapabilities | None = None


class CompactionCapabilities(Extensible, frozen=True, kw_only=True):
    """The client accepts `compaction_update` and `compaction_summary_chunk` (unstable)."""


class ClientSessionCapabilities(Extensible, frozen=True, kw_only=True):
    """The client's capabilities within a session."""

    config_options: SessionConfigOptionsCapabilities | None = None
    compaction: CompactionCapabilities | None = None


class ElicitationFormCapabilities(Extensible, frozen=True, kw_only=True):
    """The client can show the user a form."""


class ElicitationUrlCapabilities(Extensible, frozen=True, kw_only=True):
    """The client can send the user to a web page."""


class ElicitationCapabilities(Extensible, frozen=True, kw_only=True):
    """How the client can ask the user; with neither mode it cannot."""

    form: ElicitationFormCapabilities | None = None
    url: ElicitationUrlCapabilities | None = None


class PlanCapabilities(Extensible, frozen=True, kw_only=True):
    """The client accepts `plan_update` and `plan_removed` (unstable)."""


class ClientCapabilities(Extensible, frozen=True, kw_only=True):
    """The client's capabilities.

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
    """The content blocks that the agent accepts in prompts besides text and links."""

    image: bool = False
    audio: bool = False
    embedded_context: bool = False


class McpCapabilities(Extensible, frozen=True, kw_only=True):
    """The MCP servers that the agent can reach besides those over stdio; `acp` is unstable."""

    http: bool = False
    sse: bool = False
    acp: bool = False


class SessionListCapabilities(Extensible, frozen=True, kw_only=True):
    """The agent serves `session/list`."""


class SessionDeleteCapabilities(Extensible, frozen=True, kw_only=True):
    """The agent serves `session/delete`."""


class SessionAdditionalDirectoriesCapabilities(Extensible, frozen=True, kw_only=True):
    """The agent accepts `additionalDirectories`."""


class SessionForkCapabilities(Extensible, frozen=True, kw_only=True):
    """The agent serves `session/fork` (unstable)."""


class SessionResumeCapabilities(Extensible, frozen=True, kw_only=True):
    """The agent serves `session/resume`."""


class SessionCloseCapabilities(Extensible, frozen=True, kw_only=True):
    """The agent serves `session/close`."""


class SessionSystemPromptOverrideCapabilities(Extensible, frozen=True, kw_only=True):
    """The agent lets a client's system prompt replace its own instructions."""


class SessionSystemPromptModeCapabilities(Extensible, frozen=True, kw_only=True):
    """What the agent can do with a client's system prompt besides appending it to its own instructions."""

    override: SessionSystemPromptOverrideCapabilities | None = None


class SessionSystemPromptCapabilities(Extensible, frozen=True, kw_only=True):
    """The agent accepts `systemPrompt` when a session is opened."""

    mode: SessionSystemPromptModeCapabilities | None = None


class SessionCapabilities(Extensible, frozen=True, kw_only=True):
    """The agent's capabilities for sessions, besides opening them."""

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
    """The agent's capabilities for logins."""

    logout: LogoutCapabilities | None = None


class AgentCapabilities(Extensible, frozen=True, kw_only=True):
    """The agent's capabilities."""

    load_session: bool = False
    prompt_capabilities: PromptCapabilities = PromptCapabilities()
    mcp_capabilities: McpCapabilities = McpCapabilities()
    session_capabilities: SessionCapabilities = SessionCapabilities()
    auth: AgentAuthCapabilities = AgentAuthCapabilities()
    providers: ProvidersCapabilities | None = None
