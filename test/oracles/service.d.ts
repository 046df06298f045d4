// Service is what a script in services/ exports; record.mjs explains it.
export interface Service<Client> {
  client: string | string[];
  auth: string;
  secrets: Record<string, string>;
  headers?: string[];
  connect(environment: Environment): Client;
  operations: Record<string, (client: Client, input: any, environment: Environment) => unknown>;
  normalize?(request: any): void;
  differences?: Difference[];
  without?: Record<string, string>;
}

export interface Environment {
  at(url: string): string;
  secrets: Record<string, string>;
}

export interface Difference {
  operation?: string;
  test?: string;
  request?: number;
  at: string;
  client?: unknown;
  ours?: unknown;
  why: string;
}
