from pydantic import BaseModel
from scripted import Turn, scripted
class R(BaseModel): answer: int
async def test_x():
    async def t(turn: Turn):
        turn.say("hello"); turn.think("hm")
        turn.update
        await turn.returns(answer=4)
    async with scripted(t) as agent:
        stream = agent.think(R).text("q").stream()
        events=[e async for e in stream]
        assert [e.type for e in events]==["message","thought"]
        assert (await stream.result).answer==4
        assert await agent.think(R).text("q").run()==R(answer=4)
        async with agent.session() as session:
            assert await session.think(R).text("q").run()==R(answer=4)
