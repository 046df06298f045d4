import { useDocument, useEditor, useGraph, useReadOnly } from "@/pages/builder/state";
import {
	canConnect,
	choosePath,
	connect,
	disconnect,
	edgeId,
	errorPath,
	find,
	freeNeed,
	listOf,
	needOn,
	pathsOf,
	type Step,
	title,
} from "@/shared/workflow/model";
import { IconButton } from "@/ui/button";
import { NativeSelect } from "@/ui/field";
import { CloseIcon } from "@/ui/icons";
import { useProblem } from "./form/context";
import { Section } from "./section";

/** Needs edits which steps, or paths out of them, a step runs after. */
export function Needs({ step }: { step: Step }) {
	const editor = useEditor();
	const doc = useDocument();
	const readOnly = useReadOnly();
	const graph = useGraph();
	const node = graph.nodes.get(step.id);
	const problem = useProblem(`${node?.pointer}/needs`, true);
	const edges = graph.edges.filter((edge) => edge.to === step.id);
	const others = (listOf(doc.steps, node?.block ?? null) ?? []).filter((other) =>
		canConnect(doc, freeNeed(doc, other.id), step.id),
	);
	const nameOf = (id: string) => title(find(doc.steps, id)?.step ?? { id });
	const summary = edges.length > 0 ? edges.map(({ from }) => nameOf(from)).join(", ") : "Starts immediately";
	return (
		<Section title="Runs after" summary={summary} open={problem !== undefined}>
			<div data-pointer={`${node?.pointer}/needs`} className="flex flex-col gap-2">
				{edges.length === 0 && <p className="text-muted">It starts immediately, without waiting for other steps.</p>}
				<ul className="flex flex-col gap-1">
					{edges.map(({ from, path }) => {
						const need = needOn(from, path);
						return (
							<li
								key={edgeId(need, step.id)}
								className="flex items-center gap-2 rounded-6 border bg-canvas py-0.5 pr-1 pl-3"
							>
								<span className="min-w-0 flex-1 truncate" title={from}>
									{nameOf(from)}
								</span>
								<PathSelect of={find(doc.steps, from)?.step} need={need} step={step} />
								<IconButton
									small
									icon={CloseIcon}
									disabled={readOnly}
									label={`Stop running after ${nameOf(from)}`}
									onClick={() => editor.apply((now) => disconnect(now, need, step.id), { keepSelection: true })}
								/>
							</li>
						);
					})}
				</ul>
				{others.length > 0 && (
					<NativeSelect
						aria-label="Add a step to run after"
						value=""
						disabled={readOnly}
						onChange={(event) => {
							const need = freeNeed(doc, event.target.value);
							editor.apply((now) => connect(now, need, step.id), { keepSelection: true });
						}}
						options={[
							{ value: "", label: "Add a step…" },
							...others.map((other) => ({ value: other.id, label: title(other) })),
						]}
					/>
				)}
				{problem && <p className="text-12 text-failed">{problem}</p>}
			</div>
		</Section>
	);
}

/** PathSelect chooses the path out of a step on which another one is. */
function PathSelect({ of, need, step }: { of: Step | undefined; need: string; step: Step }) {
	const editor = useEditor();
	const readOnly = useReadOnly();
	if (!of) return null;
	const paths = pathsOf(of);
	return (
		<NativeSelect
			aria-label={`Path out of ${title(of)}`}
			className="w-36"
			value={need}
			disabled={readOnly}
			onChange={(event) => {
				const other = event.target.value;
				editor.apply((now) => choosePath(now, need, other, step.id), { keepSelection: true });
			}}
			options={[
				{ value: of.id, label: paths.length > 0 ? "any path" : "when it is done" },
				...paths.map((path) => ({ value: needOn(of.id, path.id), label: path.name })),
				{ value: needOn(of.id, errorPath), label: "on error" },
			]}
		/>
	);
}
