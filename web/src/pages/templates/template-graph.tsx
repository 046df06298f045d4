import { useMemo } from "react";
import { type LaidEdge, type LaidNode, layOut } from "@/shared/workflow/layout/layout";
import { graph } from "@/shared/workflow/model/graph";
import { type Definition, type Step, title } from "@/shared/workflow/model/types";
import { parse } from "@/shared/workflow/text/content";
import { cx } from "@/ui/class";

const margin = 16;

/** TemplateGraph is a read-only graph of a definition, laid out as in the builder. */
export function TemplateGraph({ source }: { source: string }) {
	const read = useMemo(() => parse(source), [source]);
	return "content" in read ? <GraphSvg definition={read.content} /> : null;
}

function GraphSvg({ definition }: { definition: Definition }) {
	const { laid, labels } = useMemo(
		() => ({ laid: layOut({ ...definition, layout: {} }), labels: labelsOf(definition) }),
		[definition],
	);
	const places = new Map(laid.nodes.map((node) => [node.id, node]));
	const { x, y, width, height } = laid.bounds;
	const { triggers } = definition;
	const steps = laid.nodes.filter(({ kind }) => kind === "step" || kind === "block").length;
	return (
		<svg
			role="img"
			aria-label={`Graph of ${triggers.length} ${triggers.length === 1 ? "trigger" : "triggers"} and ${steps} ${steps === 1 ? "step" : "steps"}`}
			viewBox={`${x - margin} ${y - margin} ${width + 2 * margin} ${height + 2 * margin}`}
			style={{ maxWidth: width + 2 * margin, maxHeight: 560 }}
			className="mx-auto block h-auto w-full"
		>
			{laid.nodes.map((node) => (
				<Node key={node.id} node={node} label={labels.get(node.id)} />
			))}
			{laid.edges.map((edge) => (
				<path key={edge.id} d={line(edge, places)} fill="none" stroke="var(--control)" strokeWidth={1.5} />
			))}
		</svg>
	);
}

interface Label {
	name: string;
	detail: string;
}

function labelsOf(definition: Definition): Map<string, Label> {
	const labels = new Map<string, Label>([["#start", { name: "Start", detail: "" }]]);
	for (const { id, type } of definition.triggers) labels.set(`@${id}`, { name: id, detail: type });
	for (const { id, step } of graph(definition).nodes.values())
		labels.set(id, { name: title(step), detail: detailOf(step) });
	return labels;
}

function detailOf(step: Step): string {
	if (step.foreach !== undefined) return "For each";
	if (step.repeat !== undefined) return "Repeat";
	return step.uses ?? "";
}

function Node({ node, label }: { node: LaidNode; label?: Label }) {
	const { kind, width, height, absolute } = node;
	const frame = kind === "block";
	return (
		<>
			<rect
				x={absolute.x}
				y={absolute.y}
				width={width}
				height={height}
				rx={kind === "start" ? 6 : 8}
				fill={frame ? "var(--canvas)" : kind === "start" ? "var(--sunken)" : "var(--surface)"}
				stroke="var(--border)"
				strokeWidth={1.5}
				strokeDasharray={frame ? "4 3" : undefined}
			/>
			<foreignObject x={absolute.x} y={absolute.y} width={width} height={frame ? 40 : height}>
				<div
					className={cx(
						"flex h-full min-w-0 gap-x-2 px-3",
						frame ? "items-center" : "flex-col justify-center",
						kind === "start" && "items-center",
					)}
				>
					<span className="truncate font-semibold">{label?.name}</span>
					{label?.detail && <span className="truncate text-12 text-muted">{label.detail}</span>}
				</div>
			</foreignObject>
		</>
	);
}

/** line goes from the bottom of a node to the top of the next. */
function line(edge: LaidEdge, places: Map<string, LaidNode>): string {
	const from = places.get(edge.source);
	const to = places.get(edge.target);
	if (!from || !to) return "";
	const y1 = from.absolute.y + from.height;
	const y2 = to.absolute.y;
	const x1 = from.absolute.x + from.width / 2;
	// The Start bar is as wide as the row of triggers above it.
	const x2 = edge.kind === "trigger" ? x1 : to.absolute.x + to.width / 2;
	const bend = (y2 - y1) / 2;
	return `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`;
}
