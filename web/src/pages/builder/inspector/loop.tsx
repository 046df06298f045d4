import { useEditor } from "@/pages/builder/state";
import type { Json, Step } from "@/shared/workflow/model";
import { Field, TextInput } from "@/ui/field";
import { ExpressionField } from "./expression/field";
import { useProblem } from "./form/context";

/** LoopForm edits how often a block runs its steps. */
export function LoopForm({ step, pointer }: { step: Step; pointer: string }) {
	return (
		<div className="flex flex-col gap-4 px-4 pb-4">
			{step.repeat ? (
				<>
					<LoopExpression
						label="Until"
						hint="The loop ends when this is true. It can use the steps of the round that has just ended."
						value={step.repeat.until}
						pointer={`${pointer}/repeat/until`}
					/>
					<LoopText
						label="Every"
						hint="How long to wait between rounds, such as 30s."
						value={step.repeat.every}
						pointer={`${pointer}/repeat/every`}
						placeholder="no wait"
					/>
					<LoopNumber
						label="At most"
						hint="Maximum number of rounds. If the condition is not true after the last one, the loop fails."
						value={step.repeat.max}
						pointer={`${pointer}/repeat/max`}
						placeholder="100"
						max={10_000}
					/>
				</>
			) : (
				<>
					<LoopExpression
						label="For each item of"
						hint="An expression that returns a list. Steps inside refer to the current item as item and to its number as index."
						value={step.foreach ?? ""}
						pointer={`${pointer}/foreach`}
					/>
					<LoopNumber
						label="Parallel rounds"
						hint="How many rounds run at the same time."
						value={step.parallel}
						pointer={`${pointer}/parallel`}
						placeholder="1"
						max={100}
					/>
				</>
			)}
		</div>
	);
}

interface MemberProps<T extends Json> {
	label: string;
	hint: string;
	value: T | undefined;
	pointer: string;
	placeholder?: string;
}

function LoopExpression({ label, hint, value, pointer }: MemberProps<string>) {
	const editor = useEditor();
	const problem = useProblem(pointer, true);
	return (
		<div data-pointer={pointer}>
			<Field label={label} hint={hint} error={problem} required>
				<ExpressionField
					label={label}
					form="bare"
					value={value ?? ""}
					pointer={pointer}
					placeholder={label === "Until" ? "steps.check.output.done" : "steps.get.output.body.lines"}
					onChange={(text) => editor.setField(pointer, text)}
				/>
			</Field>
		</div>
	);
}

function LoopText({ label, hint, value, pointer, placeholder }: MemberProps<string>) {
	const editor = useEditor();
	const problem = useProblem(pointer, true);
	return (
		<div data-pointer={pointer}>
			<Field label={label} hint={hint} error={problem}>
				<TextInput
					value={value ?? ""}
					placeholder={placeholder}
					onChange={(event) => editor.setField(pointer, event.target.value || undefined)}
				/>
			</Field>
		</div>
	);
}

function LoopNumber({ label, hint, value, pointer, placeholder, max }: MemberProps<number> & { max: number }) {
	const editor = useEditor();
	const problem = useProblem(pointer, true);
	return (
		<div data-pointer={pointer}>
			<Field label={label} hint={hint} error={problem}>
				<TextInput
					type="number"
					min={1}
					max={max}
					step={1}
					value={value ?? ""}
					placeholder={placeholder}
					onChange={(event) => {
						const { value: text, valueAsNumber } = event.target;
						editor.setField(pointer, text === "" ? undefined : valueAsNumber);
					}}
				/>
			</Field>
		</div>
	);
}
