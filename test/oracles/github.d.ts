import type { operations } from "@octokit/openapi-types";

// Params has the parameters of an operation by its id in GitHub's OpenAPI document.
// Octokit's own types allow any other name beside them.
export type Params<Id extends keyof operations> = (operations[Id] extends { parameters: { path: infer Path } } ? Path : {}) &
  (operations[Id] extends { parameters: { query?: infer Query } } ? Query : {}) &
  (operations[Id] extends { requestBody?: { content: { "application/json": infer Body } } } ? Body : {});

export type Id = keyof operations;
