import { createContext, type ReactNode, useState } from "react";
import type { JsonObject } from "@/shared/workflow/model";
import type { JsonSchema } from "./schema";

/** The step or the trigger whose inputs are filled from the account of its connection. */
export interface ListingOwner {
	/** The operation of the step, or the type of the trigger. */
	readonly of: { readonly operation: string } | { readonly trigger: string };
	/** Of the input. */
	readonly schema: JsonSchema;
	/** The name of the connection. */
	readonly connection: string | undefined;
	readonly input: JsonObject;
	/** Of the input, from the root of the document. */
	readonly pointer: string;
}

interface Listings extends ListingOwner {
	/** The input in which somebody is typing: what depends on it waits. */
	readonly typing: string | null;
	readonly setTyping: (name: string | null) => void;
}

/** ListingContext has the step or the trigger that a form belongs to; null if nothing can be listed for it. */
export const ListingContext = createContext<Listings | null>(null);

/** Listings provides the step or the trigger to the fields of its form. */
export function Listings({ children, ...owner }: ListingOwner & { children: ReactNode }) {
	const [typing, setTyping] = useState<string | null>(null);
	return <ListingContext value={{ ...owner, typing, setTyping }}>{children}</ListingContext>;
}
