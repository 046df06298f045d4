import { type ReactNode, useEffect, useMemo, useState } from "react";
import { find, title } from "@/builder/model";
import { useDocument, useFixed, useProblems } from "@/builder/state";
import { type Gathered, knownFor, pathFor, scopeFor } from "../data/gather";
import { useData } from "../data/use-data";
import { evaluate } from "../data/wire";
import { ExpressionContext } from "./expression/context";
import { type Evaluate, Previews } from "./expression/preview";
import { FormContext } from "./form/context";

/** InspectorScope gives the fields inside it the problems and the data of a node; null for the workflow itself. */
export function InspectorScope({ node, children }: { node: string | null; children: ReactNode }) {
	const doc = useDocument();
	const problems = useProblems();
	const readOnly = useFixed();
	const gathered = useData();
	const form = useMemo(
		() => ({
			readOnly,
			problems: problems.map(({ pointer, message, hint }) => ({ pointer, message: worded(message, hint) })),
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

function worded(message: string, hint: string | undefined): string {
	return hint ? `${message}; ${hint}` : message;
}

/** The previews of the fields, which are asked for anew when the data is another. */
function usePreviews(gathered: Gathered, node: string | null): Previews {
	const doc = useDocument();
	const known = useMemo(() => knownFor(gathered, doc, node), [gathered, doc, node]);
	const path = node === null || node.startsWith("@") ? undefined : pathFor(gathered, doc, node);
	const run = gathered.run?.id;
	const ask = useMemo(
		(): Evaluate => (questions, signal) =>
			evaluate(questions, { ...(run && { run }), ...(path && { path }), pinned: doc.pinned }, signal),
		[run, path, doc.pinned],
	);
	const [previews] = useState(() => new Previews(ask, known));
	const data = JSON.stringify([run, path, known.trigger, known.item, [...known.steps]]);
	// biome-ignore lint/correctness/useExhaustiveDependencies: an edit of the document is no other data
	useEffect(() => previews.use(ask, known), [previews, ask, data]);
	useEffect(() => () => previews.stop(), [previews]);
	return previews;
}
