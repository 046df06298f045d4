import { Fragment } from "react";
import { cx } from "@/ui/class";
import { InfoIcon } from "@/ui/icons";
import { useExpressions } from "./context";
import type { Preview } from "./preview";

/** PreviewLine shows the value of an expression, or what would have to run first. */
export function PreviewLine({ preview, id, told }: { preview: Preview; id: string; told: boolean }) {
	const latest = preview.state === "asking" ? preview.last : preview;
	// A problem is shown once, by the field if it has it.
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
			{shown && <PreviewText preview={shown} />}
		</p>
	);
}

function PreviewText({ preview }: { preview: Preview }) {
	switch (preview.state) {
		case "value": {
			const text = formatValue(preview.value);
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
		case "failed":
			return <Failed steps={preview.steps} message={preview.message} />;
		case "unknown":
			return "The value cannot be shown right now.";
		default:
			return null;
	}
}

function Missing({ needs }: { needs: readonly string[] }) {
	const { nameOf } = useExpressions();
	const steps = needs.filter((need) => need.startsWith("steps.")).map((need) => nameOf(need.slice("steps.".length)));
	if (steps.length === 0) {
		if (needs.includes("response")) return "A value appears once there is a response";
		return needs.includes("item") ? "Run it once to see a value" : "Run the workflow to see a value";
	}
	return (
		<>
			Run <Names names={steps} /> to see a value
		</>
	);
}

/** Failed says that the run has no data for an expression: the run failed, not the expression. */
function Failed({ steps, message }: { steps: readonly string[]; message: string }) {
	const { nameOf, gathered } = useExpressions();
	return (
		<span className="flex min-w-0 gap-1.5" title={message}>
			<InfoIcon size={14} className="mt-px shrink-0 text-waiting" />
			<span className="min-w-0 break-words">
				{steps.length > 0 ? (
					<>
						No value in this run: <Names names={steps.map(nameOf)} /> did not succeed
					</>
				) : (
					`No value with the data of ${gathered.run ? "this run" : "the pinned data"}: ${message}`
				)}
			</span>
		</span>
	);
}

function Names({ names }: { names: readonly string[] }) {
	return names.map((name, i) => (
		<Fragment key={name}>
			{i > 0 && (i === names.length - 1 ? " and " : ", ")}
			<em>{name}</em>
		</Fragment>
	));
}

function formatValue(value: unknown): string {
	return typeof value === "string" ? JSON.stringify(value) : (JSON.stringify(value) ?? "nil");
}
