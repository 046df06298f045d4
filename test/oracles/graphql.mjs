// Compares GraphQL queries by what they ask for. Clients generate the text of their
// queries, or leave it to people; which members they select is a choice.
import { readFileSync } from "node:fs";
import { parse as parseGraphQL, valueFromASTUntyped } from "graphql";
import { parse as parseYAML } from "yaml";

// queries returns the queries of each operation, hook and trigger of a manifest.
export function queries(id) {
  const manifest = parseYAML(readFileSync(new URL(`../../integrations/${id}/integration.yaml`, import.meta.url), "utf8"));
  const calls = ({ request, do: list }) => [request, ...(list ?? [])].filter((call) => call?.graphql);
  const texts = (list) => list.map(({ graphql }) => graphql);
  const of = (name) => texts(calls(manifest.operations[name]));
  const operations = Object.keys(manifest.operations).map((name) => [name, of(name)]);
  const hooks = Object.entries(manifest.hooks ?? {}).map(([name, { register, unregister }]) => [`hooks/${name}`, texts([register, unregister])]);
  const polled = Object.entries(manifest.triggers ?? {}).filter(([, { poll }]) => poll);
  const triggers = polled.map(([name, { poll }]) => [`triggers/${name}`, of(poll.operation)]);
  return Object.fromEntries([...operations, ...hooks, ...triggers]);
}

// root returns what a query asks for: its kind, its one field, and the arguments of that.
// A variable has its value, or null if it has none.
function root(query, variables = {}) {
  const [definition] = parseGraphQL(query).definitions;
  if (definition.kind !== "OperationDefinition") throw new Error("there is no query");
  const [field] = definition.selectionSet.selections;
  if (field.kind !== "Field") throw new Error("the query has no field");
  const args = (field.arguments ?? []).map(({ name, value }) => [name.value, valueFromASTUntyped(value, variables), value.kind === "Variable" && value.name.value]);
  return { kind: definition.operation, field: field.name.value, args };
}

// inOurWords replaces the query of a client by the one of ours that asks for the same, with
// the values that the client has sent.
export function inOurWords(json, ours) {
  const theirs = root(json.query, json.variables);
  const query = ours.find((text) => root(text).kind === theirs.kind && root(text).field === theirs.field);
  if (query === undefined) throw new Error(`the client sends ${theirs.kind} ${theirs.field}`);
  const left = new Map(theirs.args.filter(([, value]) => value !== undefined).map(([name, value]) => [name, value]));
  const variables = {};
  for (const [name, , variable] of root(query).args) {
    if (!variable) continue;
    if (left.has(name)) variables[variable] = left.get(name);
    left.delete(name);
  }
  if (left.size > 0) throw new Error(`the client sends ${[...left.keys()].join(", ")} with ${theirs.field}`);
  return { query, variables };
}
