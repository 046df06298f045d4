import type { Json } from "@/builder/model";
import { Button, IconButton } from "@/ui/button";
import { FieldContext } from "@/ui/field";
import { CloseIcon, PlusIcon } from "@/ui/icons";
import { Control } from "./control";
import type { FieldPlan } from "./plan";
import type { FieldProps } from "./props";

/** ListControl edits a list, one element below the other. */
export function ListControl({ plan, value, onChange, pointer, root }: FieldProps) {
	const items = Array.isArray(value) ? (value as readonly Json[]) : [];
	const put = (next: Json[]) => onChange(next.length > 0 ? next : undefined);
	const item: FieldPlan = plan.items ?? { name: "", label: "", kind: "any", required: true };
	return (
		<FieldContext value={null}>
			<fieldset aria-label={plan.label} className="flex min-w-0 flex-col gap-1.5">
				{items.map((element, i) => {
					const label = `${plan.label} ${i + 1}`;
					return (
						// biome-ignore lint/suspicious/noArrayIndexKey: an element of a list is known by its place only
						<div key={i} data-pointer={`${pointer}/${i}`} className="flex items-start gap-1">
							<div className="min-w-0 flex-1">
								<Control
									plan={{ ...item, label }}
									value={element}
									pointer={`${pointer}/${i}`}
									root={root}
									onChange={(next) => put(items.map((other, at) => (at === i ? (next ?? "") : other)))}
								/>
							</div>
							<IconButton
								icon={CloseIcon}
								label={`Remove ${label}`}
								onClick={() => put(items.filter((_, at) => at !== i))}
							/>
						</div>
					);
				})}
				<Button small kind="quiet" className="self-start" icon={PlusIcon} onClick={() => put([...items, ""])}>
					Add
				</Button>
			</fieldset>
		</FieldContext>
	);
}
