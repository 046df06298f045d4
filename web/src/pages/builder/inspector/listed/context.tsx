import { createContext, type ReactNode, useState } from "react";
import type { Schema } from "@/api/client";
import type { JsonObject } from "@/shared/workflow/model";

/** The step whose inputs are filled from the account of its connection. */
export interface ListingStep {
	readonly action: Schema["Action"];
	/** The name of the connection. */
	readonly connection: string | undefined;
	readonly input: JsonObject;
	/** Of the input, from the root of the document. */
	readonly pointer: string;
}

interface Listings extends ListingStep {
	/** The input in which somebody is typing: what depends on it waits. */
	readonly typing: string | null;
	readonly setTyping: (name: string | null) => void;
}

/** ListingContext has the step that a form belongs to; null if nothing can be listed for it. */
export const ListingContext = createContext<Listings | null>(null);

/** Listings provides the step to the fields of its form. */
export function Listings({ children, ...step }: ListingStep & { children: ReactNode }) {
	const [typing, setTyping] = useState<string | null>(null);
	return <ListingContext value={{ ...step, typing, setTyping }}>{children}</ListingContext>;
}
