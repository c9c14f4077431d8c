// The official JavaScript client against the engine. Run by clients.py: node clients.mjs URL CHAT
// Prints one line a check; exits 1 at the first that fails.
import assert from "node:assert/strict";
import { Ollama } from "ollama";

const [host, chat] = process.argv.slice(2);
const ollama = new Ollama({ host });
const check = async (what, body) => {
  await body();
  console.log(`  ok  ${what}`);
};

await check("list", async () => {
  const { models } = await ollama.list();
  assert.ok(models.some((model) => model.name === chat));
  assert.ok(new Date(models[0].modified_at) > 0);
});

await check("show", async () => {
  const shown = await ollama.show({ model: chat });
  assert.ok(shown.capabilities.includes("completion"));
  assert.equal(shown.details.format, "gguf");
});

await check("chat", async () => {
  const answer = await ollama.chat({
    model: chat,
    messages: [{ role: "user", content: "Say hello." }],
    options: { num_predict: 12 },
  });
  assert.equal(answer.message.role, "assistant");
  assert.ok(answer.message.content.length > 0);
  assert.ok(answer.done && answer.eval_count > 0);
});

await check("chat, streamed", async () => {
  let parts = 0;
  let last;
  const stream = await ollama.chat({
    model: chat,
    stream: true,
    messages: [{ role: "user", content: "Count to five." }],
    options: { num_predict: 12 },
  });
  for await (const part of stream) {
    parts += 1;
    last = part;
  }
  assert.ok(parts > 2 && last.done && last.done_reason);
});

await check("a stream that is aborted", async () => {
  const stream = await ollama.chat({
    model: chat,
    stream: true,
    messages: [{ role: "user", content: "Write a long story." }],
  });
  await assert.rejects(async () => {
    for await (const _ of stream) stream.abort();
  }, { name: "AbortError" });
});

await check("generate with a schema", async () => {
  const answer = await ollama.generate({
    model: chat,
    prompt: "A city and its country, as JSON.",
    format: {
      type: "object",
      properties: { city: { type: "string", maxLength: 40 }, country: { type: "string", maxLength: 40 } },
      required: ["city", "country"],
    },
    options: { temperature: 0, num_predict: 100 },
  });
  assert.deepEqual(Object.keys(JSON.parse(answer.response)).sort(), ["city", "country"]);
});

await check("tools", async () => {
  const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
  const answer = await ollama.chat({
    model: chat,
    messages: [{ role: "user", content: "What is the weather in Oslo? Use the tool." }],
    tools: [{ type: "function", function: { name: "weather", description: "Weather of a city", parameters } }],
    options: { temperature: 0, num_predict: 80 },
  });
  const [call] = answer.message.tool_calls;
  assert.equal(call.function.name, "weather");
  assert.equal(typeof call.function.arguments.city, "string");
});

await check("embed", async () => {
  const { embeddings } = await ollama.embed({ model: "all-minilm", input: ["one", "two"] });
  assert.deepEqual(embeddings.map((vector) => vector.length), [384, 384]);
});

await check("ps", async () => {
  const { models } = await ollama.ps();
  assert.ok(models.some((model) => model.name === chat && model.size > 0));
});

await check("an unknown model is a ResponseError 404", async () => {
  await assert.rejects(ollama.chat({ model: "nope", messages: [] }), { name: "ResponseError", status_code: 404 });
});

await check("pull of an installed model", async () => {
  const last = await ollama.pull({ model: "all-minilm", stream: false });
  assert.equal(last.status, "success");
});
