import { useEditor } from "@/pages/builder/state";
import {
	addPath,
	isObject,
	type Json,
	movePath,
	namePath,
	pathsOf,
	removePath,
	type Step,
	type SwitchPath,
	setElse,
} from "@/shared/workflow/model";
import { Button, IconButton } from "@/ui/button";
import { Checkbox, Field, NativeSelect, TextInput } from "@/ui/field";
import { ChevronDownIcon, ChevronUpIcon, PlusIcon, TrashIcon } from "@/ui/icons";
import { ExpressionField } from "./expression/field";
import { useProblem } from "./form/context";

/** SwitchForm edits the paths of a switch: their order, names and conditions. */
export function SwitchForm({ step, pointer }: { step: Step; pointer: string }) {
	const editor = useEditor();
	const paths = pathsOf(step).filter((path) => path.when !== undefined);
	const rest = pathsOf(step).find((path) => path.when === undefined);
	const at = `${pointer}/with`;
	const all = step.with?.match === "all";
	return (
		<div className="flex flex-col gap-4">
			<NativeSelect
				aria-label="Which paths are taken"
				value={all ? "all" : "first"}
				onChange={(event) => editor.setField(`${at}/match`, event.target.value === "all" ? "all" : undefined)}
				options={[
					{ value: "first", label: "Take the first path that applies" },
					{ value: "all", label: "Take every path that applies" },
				]}
			/>
			<ol className="flex flex-col gap-3">
				{paths.map((path, index) => (
					// The id follows the name while it is typed, which must not move the focus.
					// biome-ignore lint/suspicious/noArrayIndexKey: a path has no other name that stays
					<li key={index}>
						<PathForm step={step} path={path} index={index} last={index === paths.length - 1} pointer={at} />
					</li>
				))}
			</ol>
			<Button
				small
				icon={PlusIcon}
				className="self-start"
				onClick={() => editor.apply((doc) => addPath(doc, step.id), { keepSelection: true })}
			>
				Add a path
			</Button>
			<Checkbox
				label="Otherwise"
				hint={
					rest ? "A path of its own, taken when no condition is true." : "When no condition is true, no path is taken."
				}
				checked={rest !== undefined}
				onChange={(event) => {
					const { checked } = event.target;
					editor.apply((doc) => setElse(doc, step.id, checked), { keepSelection: true });
				}}
			/>
		</div>
	);
}

interface PathFormProps {
	step: Step;
	path: SwitchPath;
	index: number;
	last: boolean;
	/** Of the input of the switch. */
	pointer: string;
}

function PathForm({ step, path, index, last, pointer }: PathFormProps) {
	const editor = useEditor();
	const here = `${pointer}/paths/${index}`;
	const problem = useProblem(`${here}/when`, true);
	const bad = useProblem(`${here}/id`, true);
	const move = (by: -1 | 1) => editor.apply((doc) => movePath(doc, step.id, path.id, by), { keepSelection: true });
	return (
		<fieldset className="flex min-w-0 flex-col gap-2 rounded-8 border bg-canvas p-3">
			<legend className="sr-only">Path {index + 1}</legend>
			<div data-pointer={`${here}/id`} className="flex items-center gap-1">
				<TextInput
					aria-label={`Name of path ${index + 1}`}
					value={givenName(step, index)}
					placeholder={path.id}
					maxLength={200}
					onChange={(event) => {
						const name = event.target.value;
						editor.apply((doc) => namePath(doc, step.id, path.id, name), {
							keepSelection: true,
							group: `${here}/name`,
						});
					}}
				/>
				<IconButton
					small
					icon={ChevronUpIcon}
					label={`Move ${path.name} up`}
					disabled={index === 0}
					onClick={() => move(-1)}
				/>
				<IconButton
					small
					icon={ChevronDownIcon}
					label={`Move ${path.name} down`}
					disabled={last}
					onClick={() => move(1)}
				/>
				<IconButton
					small
					icon={TrashIcon}
					label={`Remove ${path.name}`}
					disabled={index === 0 && last}
					onClick={() => editor.apply((doc) => removePath(doc, step.id, path.id), { keepSelection: true })}
				/>
			</div>
			{bad && <p className="text-12 text-failed">{bad}</p>}
			<div data-pointer={`${here}/when`}>
				<Field label="When" error={problem} required>
					<ExpressionField
						label={`Condition of path ${index + 1}`}
						form="bare"
						value={path.when ?? ""}
						pointer={`${here}/when`}
						placeholder="trigger.payload.total > 100"
						onChange={(text) => editor.setField(`${here}/when`, text)}
					/>
				</Field>
			</div>
		</fieldset>
	);
}

/** The name in the definition; without one, people see the id. */
function givenName(step: Step, index: number): string {
	const paths = step.with?.paths;
	const path: Json | undefined = Array.isArray(paths) ? paths[index] : undefined;
	return isObject(path) && typeof path.name === "string" ? path.name : "";
}
