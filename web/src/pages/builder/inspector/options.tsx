import { useDocument, useEditor } from "@/pages/builder/state";
import type { JsonSchema } from "@/shared/listed/schema";
import { convertible, find, type Step, title, toSwitch } from "@/shared/workflow/model";
import { Button } from "@/ui/button";
import { Field, TextInput } from "@/ui/field";
import { useFormat } from "../data/queries";
import { ExpressionField } from "./expression/field";
import { useProblem } from "./form/context";
import { SchemaField } from "./form/field";
import { SchemaForm } from "./form/form";
import { planField } from "./form/plan";
import { Needs } from "./needs";
import { Section } from "./section";

interface OptionsProps {
	step: Step;
	pointer: string;
	block: boolean;
}

/** StepOptions edits the settings of a step besides its action. */
export function StepOptions({ step, pointer, block }: OptionsProps) {
	const format = useFormat();
	const when = step.if === undefined ? "Always" : String(step.if);
	const several = (step.needs?.length ?? 0) > 1 || step.join !== undefined;
	return (
		<>
			<Section title="Run when" summary={when} open={step.if !== undefined}>
				<Condition step={step} pointer={pointer} />
				{several && format && <Member name="join" step={step} pointer={pointer} format={format} />}
			</Section>
			<Needs step={step} />
			{!block && format && (
				<Section title="Retry" summary={retrySummary(step)} open={step.retry !== undefined}>
					<RetryForm step={step} pointer={pointer} format={format} />
				</Section>
			)}
			{format && (
				<Section
					title="Error handling"
					summary={step.on_error === "continue" ? "The run continues" : "The run fails"}
					open={step.on_error !== undefined}
				>
					<Member name="on_error" step={step} pointer={pointer} format={format} />
					{step.connection !== undefined && (
						<Member name="on_broken_connection" step={step} pointer={pointer} format={format} />
					)}
				</Section>
			)}
			{!block && (
				<Section title="Time limit" summary={step.timeout ?? "1m"} open={step.timeout !== undefined}>
					<Timeout value={step.timeout} pointer={`${pointer}/timeout`} standard="1m" />
				</Section>
			)}
			{!block && format && (
				<Section title="Mask" summary={step.mask?.join(", ") ?? "Nothing"} open={step.mask !== undefined}>
					<Member name="mask" step={step} pointer={pointer} format={format} />
				</Section>
			)}
		</>
	);
}

/** Condition edits when a step runs. */
function Condition({ step, pointer }: { step: Step; pointer: string }) {
	const editor = useEditor();
	const at = `${pointer}/if`;
	const problem = useProblem(at, true);
	return (
		<div data-pointer={at} className="flex flex-col gap-2">
			<Opposite step={step} />
			<Field
				label="Condition"
				hint="If it is false, the step is skipped. Without a condition, the step always runs."
				error={problem}
			>
				<ExpressionField
					label="Condition"
					form="bare"
					lines
					value={step.if === undefined ? "" : String(step.if)}
					pointer={at}
					onChange={(text) => editor.setField(at, text.trim() === "" ? undefined : text)}
				/>
			</Field>
		</div>
	);
}

/** Opposite offers to turn conditions of which one is the opposite of the others into a branch. */
function Opposite({ step }: { step: Step }) {
	const editor = useEditor();
	const doc = useDocument();
	const others = convertible(doc, step.id).filter((id) => id !== step.id);
	if (others.length === 0) return null;
	const names = others.map((id) => `“${title(find(doc.steps, id)?.step ?? { id })}”`).join(", ");
	return (
		<div className="flex flex-col items-start gap-2 rounded-6 bg-sunken px-3 py-2 text-12">
			<p>
				This is the opposite of the condition of {names}, and does not change with it. A branch keeps them together.
			</p>
			<Button small onClick={() => editor.apply((now) => toSwitch(now, step.id), { announce: "Made a branch." })}>
				Turn into a branch
			</Button>
		</div>
	);
}

/** Member edits one field of a step, using the schema of the workflow format. */
function Member({ name, step, pointer, format }: { name: string; step: Step; pointer: string; format: JsonSchema }) {
	const editor = useEditor();
	const schema = format.$defs?.step?.properties?.[name];
	const at = `${pointer}/${name}`;
	return (
		<SchemaField
			Form={SchemaForm}
			plan={planField(name, typeof schema === "object" ? schema : {}, format, false)}
			value={step[name as keyof Step] as string | undefined}
			onChange={(value) => editor.setField(at, value)}
			pointer={at}
			root={format}
			expressions={false}
		/>
	);
}

function RetryForm({ step, pointer, format }: { step: Step; pointer: string; format: JsonSchema }) {
	const editor = useEditor();
	const retry = { ...step.retry };
	return (
		<>
			<p className="text-muted">
				Network errors, timeouts and the statuses 408, 425, 429 and 5xx are retried. Everything else fails immediately.
			</p>
			<SchemaForm
				schema={{ $ref: "#/$defs/retry" }}
				root={format}
				value={retry}
				pointer={`${pointer}/retry`}
				expressions={false}
				onChange={(name, value) => {
					const { [name as keyof typeof retry]: _, ...others } = retry;
					const next = value === undefined ? others : { ...retry, [name]: value };
					editor.setField(`${pointer}/retry`, Object.keys(next).length > 0 ? next : undefined);
				}}
			/>
		</>
	);
}

function retrySummary(step: Step): string {
	const attempts = step.retry?.max_attempts ?? 5;
	return attempts === 1 ? "Never" : `Up to ${attempts} attempts`;
}

/** Timeout edits a duration that has a default. */
export function Timeout({ value, pointer, standard }: { value?: string; pointer: string; standard: string }) {
	const editor = useEditor();
	const problem = useProblem(pointer, true);
	return (
		<div data-pointer={pointer}>
			<Field label="Time limit" hint="A duration such as 90s, 15m or 1h30m. Waiting does not count." error={problem}>
				<TextInput
					value={value ?? ""}
					placeholder={standard}
					onChange={(event) => editor.setField(pointer, event.target.value || undefined)}
				/>
			</Field>
		</div>
	);
}
