import { useMemo } from "react";
import { useDocument } from "@/pages/builder/state";
import type { JsonSchema } from "@/shared/listed/schema";
import { ErrorNote } from "@/ui/states";
import { definitionError, type Titles } from "./problem-words";
import { useActions, useFormat } from "./queries";

/** useTitles returns where the titles of the fields of the document come from. */
export function useTitles(): Titles {
	const format = useFormat();
	const actions = useActions();
	return useMemo(
		() => ({
			...(format && { format }),
			inputOf: (uses: string) => actions?.get(uses)?.input_schema as JsonSchema | undefined,
		}),
		[format, actions],
	);
}

/** DefinitionError shows why the document could not be run, in the words of the page. */
export function DefinitionError({ error }: { error: unknown }) {
	return <ErrorNote error={definitionError(useDocument(), useTitles(), error)} />;
}
