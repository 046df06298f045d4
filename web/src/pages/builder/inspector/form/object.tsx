import { isObject } from "@/shared/workflow/model";
import { Button } from "@/ui/button";
import { PlusIcon, TrashIcon } from "@/ui/icons";
import type { FieldProps, NestingProps } from "./props";

/** ObjectControl is a nested form that is added on demand. */
export function ObjectControl({ plan, value, onChange, pointer, root, expressions, Form }: NestingProps) {
	if (!isObject(value)) {
		return (
			<Button small className="self-start" icon={PlusIcon} onClick={() => onChange({})}>
				Add
			</Button>
		);
	}
	const set = (name: string, next: FieldProps["value"]) => {
		const { [name]: _, ...others } = value;
		onChange(next === undefined ? others : { ...value, [name]: next });
	};
	return (
		<fieldset aria-label={plan.label} className="flex min-w-0 flex-col gap-4 rounded-8 border bg-canvas p-3">
			<Form
				schema={plan.schema ?? {}}
				root={root}
				value={value}
				pointer={pointer}
				onChange={set}
				expressions={expressions}
			/>
			{!plan.required && (
				<Button small kind="quiet" className="self-start" icon={TrashIcon} onClick={() => onChange(undefined)}>
					Remove {plan.label.toLowerCase()}
				</Button>
			)}
		</fieldset>
	);
}
