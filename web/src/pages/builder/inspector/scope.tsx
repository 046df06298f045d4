import { type ReactNode, useEffect, useMemo, useState } from "react";
import { useDocument, useProblems, useReadOnly } from "@/pages/builder/state";
import { find, title } from "@/shared/workflow/model";
import { type Gathered, knownFor, pathFor, scopeFor } from "../data/gather";
import { useData } from "../data/use-data";
import { evaluate } from "../data/wire";
import { ExpressionContext } from "./expression/context";
import { type Evaluate, Previews } from "./expression/preview";
import { FormContext } from "./form/context";

/** InspectorScope provides the problems and data of a node to the fields inside it; null for the workflow itself. */
export function InspectorScope({ node, children }: { node: string | null; children: ReactNode }) {
	const doc = useDocument();
	const problems = useProblems();
	const readOnly = useReadOnly();
	const gathered = useData();
	const form = useMemo(
		() => ({
			readOnly,
			problems: problems.map(({ pointer, message, hint }) => ({ pointer, message: withHint(message, hint) })),
		}),
		[problems, readOnly],
	);
	const previews = usePreviews(gathered, node);
	const expressions = useMemo(
		() => ({
			previews,
			gathered,
			scope: (pointer: string) => scopeFor(gathered, doc, pointer),
			nameOf: (id: string) => {
				const step = find(doc.steps, id)?.step;
				return step ? title(step) : id;
			},
		}),
		[previews, gathered, doc],
	);
	return (
		<FormContext value={form}>
			<ExpressionContext value={expressions}>{children}</ExpressionContext>
		</FormContext>
	);
}

function withHint(message: string, hint: string | undefined): string {
	return hint ? `${message}; ${hint}` : message;
}

/** The previews of the fields, evaluated again when the data changes. */
function usePreviews(gathered: Gathered, node: string | null): Previews {
	const doc = useDocument();
	const known = useMemo(() => knownFor(gathered, doc, node), [gathered, doc, node]);
	const path = node === null || node.startsWith("@") ? undefined : pathFor(gathered, doc, node);
	const run = gathered.run?.id;
	const { sample } = gathered;
	const ask = useMemo(
		(): Evaluate => (questions, signal) =>
			evaluate(questions, { ...(run && { run }), ...(path && { path }), pinned: doc.pinned, sample }, signal),
		[run, path, doc.pinned, sample],
	);
	const [previews] = useState(() => new Previews(ask, known));
	const data = JSON.stringify([run, path, sample, known.trigger, known.item, [...known.steps]]);
	// biome-ignore lint/correctness/useExhaustiveDependencies: editing the document does not change the data
	useEffect(() => previews.use(ask, known), [previews, ask, data]);
	useEffect(() => () => previews.stop(), [previews]);
	return previews;
}
