import { useQuery } from "@tanstack/react-query";
import { useContext, useState } from "react";
import { api, got, type Schema } from "@/api/client";
import { useMay } from "@/api/session";
import { useConnection } from "@/shared/connections/data";
import { useDebounced } from "@/shared/search/use-search";
import type { JsonObject } from "@/shared/workflow/model";
import { ListingContext } from "./context";
import type { Listed, ListedField } from "./field";
import { blockedBy, dependencies, inputPath } from "./model";

/** What is known about a list. */
export interface Listing {
	/** Why there is none: what has to be chosen first. */
	readonly blocked?: string;
	readonly list?: Schema["Options"];
	/** What it is a list of. It changes with the account and the inputs that it depends on. */
	readonly of: string;
	/** The list for the present inputs and text has not arrived yet. */
	readonly busy: boolean;
	readonly error: unknown;
	/** Asks the service again. */
	readonly refresh: () => void;
}

/** How long an input must not have changed before what depends on it is listed. */
const pause = 300;

/** What is asked of the server. */
interface Asked {
	/** Questions with equal keys have equal answers. The search comes last. */
	readonly key: readonly unknown[];
	readonly id: string;
	readonly body: Schema["OptionsQuery"];
}

/**
 * useListing lists what an input can have in the account of the step's connection. Lists are kept while the builder is
 * open. Nothing is asked for an input before it is wanted.
 */
export function useListing(plan: ListedField, pointer: string, wanted: boolean, search = ""): Listing {
	const owner = useContext(ListingContext);
	const write = useMay("write");
	const connection = useConnection(owner?.connection);
	const { listed } = plan;
	const input = useSettledInput(listed);
	const now = JSON.stringify(ask());
	const settled = useDebounced(now, pause);
	const { key, id, body } = JSON.parse(settled) as Asked;
	const blocked = reason();
	const query = useQuery({
		queryKey: ["options", ...key],
		queryFn: ({ signal }) => got(api.POST("/v1/connections/{id}/options", { params: { path: { id } }, body, signal })),
		enabled: wanted && write && listed !== undefined && blocked === undefined && id !== "",
		staleTime: Number.POSITIVE_INFINITY,
		gcTime: Number.POSITIVE_INFINITY,
		placeholderData: (last, before) => (isSearchOf(before?.queryKey ?? [], key) ? last : undefined),
	});
	const current = settled === now;
	return {
		...(blocked !== undefined && { blocked }),
		...(blocked === undefined && current && query.data && { list: query.data }),
		of: JSON.stringify(key.slice(0, -1)),
		busy: blocked === undefined && wanted && write && (query.isFetching || connection === undefined || !current),
		error: query.isFetching || !current ? null : query.error,
		refresh: () => void query.refetch(),
	};

	function reason(): string | undefined {
		if (!listed || !owner) return undefined;
		if (!owner.connection) return "Choose a connection first.";
		if (connection === null) return `There is no connection “${owner.connection}”.`;
		return blockedBy(listed, input, owner.schema);
	}

	function ask(): Asked {
		const of = owner?.of ?? { operation: "" };
		const [service] = ("trigger" in of ? of.trigger : of.operation).split(".");
		const given = listed && owner ? dependencies(listed, input) : {};
		const id = connection?.id ?? "";
		// Of an account because a connection can be reconnected with another one. Several inputs share a list.
		const key = [
			id,
			connection?.account ?? "",
			service,
			listed?.operation,
			plan.kind,
			plan.whole ?? null,
			given,
			search,
		];
		const path = inputPath(pointer, owner?.pointer ?? "");
		return { key, id, body: { ...of, input: path, with: given, ...(search !== "" && { search }) } };
	}
}

/** The input, as it was before somebody began to type in something that a list depends on. */
function useSettledInput(listed: Listed | undefined): JsonObject {
	const owner = useContext(ListingContext);
	const input = owner?.input ?? none;
	const [settled, setSettled] = useState(input);
	if (owner?.typing != null && listed?.dependsOn.includes(owner.typing)) return settled;
	if (settled !== input) setSettled(input);
	return input;
}

const none: JsonObject = {};

/** Whether two keys differ at most in the text to search for. */
function isSearchOf(before: readonly unknown[], key: readonly unknown[]): boolean {
	return JSON.stringify(before.slice(1, -1)) === JSON.stringify(key.slice(0, -1));
}
