import { useState } from "react";
import type { Shape } from "@/shared/workflow/expression/scope";
import { membersOf, typeOf } from "@/shared/workflow/expression/shape";
import { Badge } from "@/ui/badge";
import { cx } from "@/ui/class";
import { ChevronDownIcon, ChevronRightIcon } from "@/ui/icons";
import { useExpressions } from "../inspector/expression/context";
import type { Origin } from "./origin";
import { member, pathType } from "./path";

export const originWords: Readonly<Record<Origin, string>> = {
	sample: "sample",
	run: "last run",
	pinned: "pinned",
	schema: "schema",
	none: "no data",
};

export function OriginBadge({ origin }: { origin: Origin }) {
	const tone = origin === "run" ? "good" : origin === "pinned" ? "accent" : "neutral";
	return <Badge tone={tone}>{originWords[origin]}</Badge>;
}

interface Root {
	path: string;
	label: string;
	shape: Shape;
	origin?: Origin;
}

/** DataTree lists the data that an expression at a pointer can use. Clicking inserts a path; dragging works too. */
export function DataTree({ pointer, onPick }: { pointer: string; onPick?: (path: string) => void }) {
	const { scope, gathered, nameOf } = useExpressions();
	const { names } = scope(pointer);
	const roots: Root[] = [];
	for (const [name, shape] of Object.entries(names)) {
		if (name !== "steps") {
			const origin = name === "trigger" ? gathered.origins.trigger : undefined;
			roots.push({ path: name, label: name, shape, ...(origin && { origin }) });
			continue;
		}
		const steps = membersOf(shape).map(([id, step]): Root => {
			const output = step.members?.output ?? {};
			const path = `${member("steps", id)}.output`;
			return { path, label: nameOf(id), shape: output, origin: gathered.origins[`steps.${id}`] ?? "none" };
		});
		roots.unshift(...steps.reverse());
	}
	return (
		<ul aria-label="Available data" className="flex flex-col">
			{roots.map((root, i) => (
				<Branch key={root.path} {...root} depth={0} onPick={onPick} open={i === 0 && root.origin !== "none"} />
			))}
		</ul>
	);
}

/** The maximum number of listed members. */
const maxMembers = 100;

interface BranchProps extends Root {
	depth: number;
	open?: boolean;
	onPick?: (path: string) => void;
}

function Branch({ path, label, shape, origin, depth, open: first = false, onPick }: BranchProps) {
	const [open, setOpen] = useState(first);
	const inner = childrenOf(path, shape);
	const Chevron = open ? ChevronDownIcon : ChevronRightIcon;
	return (
		<li>
			<div
				className="group flex min-h-7 min-w-0 items-center gap-1 rounded-6 pr-1 hover:bg-sunken"
				style={{ paddingLeft: depth * 14 }}
			>
				{inner.length > 0 ? (
					<button
						type="button"
						aria-expanded={open}
						aria-label={`${open ? "Collapse" : "Expand"} ${label}`}
						onClick={() => setOpen(!open)}
						className="flex size-6 shrink-0 items-center justify-center rounded-6 text-muted"
					>
						<Chevron />
					</button>
				) : (
					<span className="size-6 shrink-0" />
				)}
				<button
					type="button"
					draggable
					title={path}
					onClick={() => onPick?.(path)}
					onDragStart={(event) => {
						event.dataTransfer.setData(pathType, path);
						event.dataTransfer.setData("text/plain", `\${{ ${path} }}`);
						event.dataTransfer.effectAllowed = "copy";
					}}
					className="flex min-w-0 flex-1 cursor-grab items-baseline gap-2 rounded-6 text-left"
				>
					<span className="sr-only">Insert </span>
					<span className={cx("max-w-3/4 shrink-0 truncate", depth > 0 && "font-mono text-12")}>{label}</span>
					<span className="truncate text-12 text-muted">{previewOf(shape)}</span>
				</button>
				{origin && <OriginBadge origin={origin} />}
			</div>
			{open && inner.length > 0 && (
				<ul>
					{inner.slice(0, maxMembers).map((child) => (
						<Branch key={child.path} {...child} depth={depth + 1} onPick={onPick} />
					))}
					{inner.length > maxMembers && (
						<li className="pl-8 text-12 text-muted">and {inner.length - maxMembers} more</li>
					)}
				</ul>
			)}
		</li>
	);
}

function childrenOf(path: string, shape: Shape): Root[] {
	const { value } = shape;
	if (Array.isArray(value)) {
		return value.map((element, i) => ({ path: member(path, i), label: String(i), shape: { value: element } }));
	}
	return membersOf(shape).map(([name, inner]) => ({ path: member(path, name), label: name, shape: inner }));
}

/** A short preview of a value. */
function previewOf(shape: Shape): string {
	const { value } = shape;
	if (Array.isArray(value)) return `${value.length} ${value.length === 1 ? "item" : "items"}`;
	if (value === undefined) return shape.members ? (shape.detail ?? "") : (typeOf(shape) ?? "");
	if (value !== null && typeof value === "object") return "";
	return JSON.stringify(value).slice(0, 80);
}
