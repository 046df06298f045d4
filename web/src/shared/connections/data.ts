import { queryOptions, useQuery } from "@tanstack/react-query";
import { api, direct, got, type Schema } from "@/api/client";
import { useSession } from "@/api/session";
import { useLiveQueries } from "@/live/hooks";
import { ownStaleTime } from "../own";

export type Connection = Schema["Connection"];
export type Integration = Schema["Integration"];
export type Way = Schema["IntegrationAuth"];
export type InputField = Schema["IntegrationField"];
export type Definition = Schema["ConnectionDefinition"];
export type OAuthApp = Schema["OAuthApp"];

/** useIntegrations returns all integrations: those that are part of Stepmill, and those of the workspace. */
export function useIntegrations() {
	return useQuery({
		queryKey: ["integrations"],
		staleTime: ownStaleTime,
		queryFn: async ({ signal }) => {
			const all: Integration[] = [];
			for (let cursor: string | undefined, more = true; more; ) {
				const page = await got(api.GET("/v1/integrations", { params: { query: { limit: 100, cursor } }, signal }));
				all.push(...page.data);
				cursor = page.next_cursor ?? undefined;
				more = cursor !== undefined;
			}
			return all;
		},
	});
}

const allConnections = queryOptions({
	queryKey: ["connections", "all"],
	queryFn: async ({ signal }) => {
		const all: Connection[] = [];
		for (let cursor: string | undefined, more = true; more; ) {
			const page = await got(api.GET("/v1/connections", { params: { query: { limit: 100, cursor } }, signal }));
			all.push(...page.data);
			cursor = page.next_cursor ?? undefined;
			more = cursor !== undefined;
		}
		return all;
	},
});

/** useConnections returns all connections of the workspace, by name. */
export function useConnections() {
	return useQuery(allConnections);
}

/** useConnection returns the connection with a name, or null if there is none. It is undefined while unknown. */
export function useConnection(name: string | undefined): Connection | null | undefined {
	return useQuery({
		...allConnections,
		enabled: name !== undefined,
		select: (all) => find(all, name) ?? null,
	}).data;
}

/** find returns the connection that has a name, or had it before. */
export function find(all: readonly Connection[], name: string | undefined): Connection | undefined {
	return all.find((one) => one.name === name || one.aliases.includes(name ?? ""));
}

/** presentNames returns the names of connections by those that they had before. */
export function presentNames(all: readonly Connection[] = []): Map<string, string> {
	return new Map(all.flatMap(({ name, aliases }) => aliases.map((alias) => [alias, name] as const)));
}

/** useOpenTo returns whether the person who is signed in may use a connection. */
export function useOpenTo(): (connection: Pick<Connection, "access" | "members" | "created_by">) => boolean {
	const { id } = useSession().user;
	return ({ access, members, created_by: owner }) =>
		access === "everyone" || owner === id || (access === "members" && members.includes(id));
}

/** usePeople returns the members of the workspace. */
export function usePeople() {
	return useQuery({
		queryKey: ["people"],
		queryFn: async ({ signal }) => {
			const all: Schema["Person"][] = [];
			for (let cursor: string | undefined, more = true; more; ) {
				const page = await got(direct.GET("/ui/v1/people", { params: { query: { limit: 100, cursor } }, signal }));
				all.push(...page.data);
				cursor = page.next_cursor ?? undefined;
				more = cursor !== undefined;
			}
			return all;
		},
	});
}

/** useLiveConnections refetches the connections when one breaks, and when runs use them. */
export function useLiveConnections(): void {
	useLiveQueries("connection.*", ["connections"]);
	useLiveQueries("run.*", ["connections"]);
}

/** serviceName returns what a connection connects to. */
export function serviceName(connection: Pick<Connection, "integration">, integrations: Integration[] = []): string {
	if (connection.integration === null) return "Custom";
	return integrations.find(({ id }) => id === connection.integration)?.name ?? connection.integration;
}
