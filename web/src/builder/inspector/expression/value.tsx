import { Fragment } from "react";
import { cx } from "@/ui/class";
import { useExpressions } from "./context";
import type { Preview } from "./preview";

/** PreviewLine shows what an expression comes to, or in grey what would have to run first. */
export function PreviewLine({ preview, id, told }: { preview: Preview; id: string; told: boolean }) {
	const latest = preview.state === "asking" ? preview.last : preview;
	// What is wrong is said once, by the field if it knows.
	const shown = told && latest?.state === "wrong" ? undefined : latest;
	const fading = preview.state === "asking" && shown !== undefined;
	return (
		<p
			id={id}
			className={cx(
				"min-h-4 min-w-0 flex-1 text-12",
				fading && "opacity-60",
				shown?.state === "wrong" ? "text-failed" : "text-muted",
			)}
		>
			{shown && <Words preview={shown} />}
		</p>
	);
}

function Words({ preview }: { preview: Preview }) {
	switch (preview.state) {
		case "value": {
			const text = written(preview.value);
			return (
				<span className="flex min-w-0 gap-1.5" title={text.length > 60 ? text.slice(0, 2000) : undefined}>
					<span aria-hidden="true">=</span>
					<span className="sr-only">Value:</span>
					<span className="truncate font-mono text-text">{text.slice(0, 300)}</span>
					{preview.value !== null && <span className="shrink-0">{preview.type}</span>}
				</span>
			);
		}
		case "missing":
			return <Missing needs={preview.needs} />;
		case "wrong":
			return <span className="break-words">{preview.message}</span>;
		case "unknown":
			return "The value cannot be shown just now.";
		default:
			return null;
	}
}

function Missing({ needs }: { needs: readonly string[] }) {
	const { nameOf } = useExpressions();
	const steps = needs.filter((need) => need.startsWith("steps.")).map((need) => nameOf(need.slice("steps.".length)));
	if (steps.length === 0) {
		if (needs.includes("response")) return "It has a value once there is an answer";
		return needs.includes("item") ? "Run it once to see a value" : "Run the workflow to see a value";
	}
	return (
		<>
			Run{" "}
			{steps.map((name, i) => (
				<Fragment key={name}>
					{i > 0 && (i === steps.length - 1 ? " and " : ", ")}
					<em>{name}</em>
				</Fragment>
			))}{" "}
			to see a value
		</>
	);
}

function written(value: unknown): string {
	return typeof value === "string" ? JSON.stringify(value) : (JSON.stringify(value) ?? "nil");
}
