import type { Step } from "@/builder/model";
import { useEditor } from "@/builder/state";
import { Field, TextInput } from "@/ui/field";
import { useFormat } from "../data/queries";
import { ExpressionField } from "./expression/field";
import { useProblem } from "./form/context";
import { SchemaField } from "./form/field";
import { SchemaForm } from "./form/form";
import { planField } from "./form/plan";
import type { JsonSchema } from "./form/schema";
import { Needs } from "./needs";
import { Section } from "./section";

interface OptionsProps {
	step: Step;
	pointer: string;
	block: boolean;
}

/** StepOptions is what every step can have besides its action. */
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
				<Section title="Retry" summary={retryWords(step)} open={step.retry !== undefined}>
					<RetryForm step={step} pointer={pointer} format={format} />
				</Section>
			)}
			{format && (
				<Section
					title="Error handling"
					summary={step.on_error === "continue" ? "The run goes on" : "The run fails"}
					open={step.on_error !== undefined}
				>
					<Member name="on_error" step={step} pointer={pointer} format={format} />
				</Section>
			)}
			{!block && (
				<Section title="Time limit" summary={step.timeout ?? "1m"} open={step.timeout !== undefined}>
					<Timeout value={step.timeout} pointer={`${pointer}/timeout`} standard="1m" />
				</Section>
			)}
		</>
	);
}

function Condition({ step, pointer }: { step: Step; pointer: string }) {
	const editor = useEditor();
	const at = `${pointer}/if`;
	const problem = useProblem(at, true);
	return (
		<div data-pointer={at}>
			<Field
				label="Condition"
				hint="When it is false, the step is skipped. Without one it always runs."
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

/** Member is one member of a step by the schema of the format. */
function Member({ name, step, pointer, format }: { name: string; step: Step; pointer: string; format: JsonSchema }) {
	const editor = useEditor();
	const schema = format.$defs?.step?.properties?.[name];
	const at = `${pointer}/${name}`;
	return (
		<SchemaField
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
				Network errors, time-outs and the statuses 408, 425, 429 and 5xx are tried again; everything else fails at once.
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

function retryWords(step: Step): string {
	const attempts = step.retry?.max_attempts ?? 5;
	return attempts === 1 ? "Never" : `Up to ${attempts} attempts`;
}

/** Timeout edits a length of time that has a standard. */
export function Timeout({ value, pointer, standard }: { value?: string; pointer: string; standard: string }) {
	const editor = useEditor();
	const problem = useProblem(pointer, true);
	return (
		<div data-pointer={pointer}>
			<Field
				label="Time limit"
				hint="A length of time such as 90s, 15m or 1h30m. Waiting does not count."
				error={problem}
			>
				<TextInput
					value={value ?? ""}
					placeholder={standard}
					onChange={(event) => editor.setField(pointer, event.target.value || undefined)}
				/>
			</Field>
		</div>
	);
}
