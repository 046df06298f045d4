import type { ComponentType } from "react";
import type { Json } from "@/shared/workflow/model";
import { Button, IconButton } from "@/ui/button";
import { FieldContext } from "@/ui/field";
import { CloseIcon, PlusIcon } from "@/ui/icons";
import type { FieldPlan } from "./plan";
import type { NestingProps } from "./props";

interface ListControlProps extends NestingProps {
	/** Edits one item. */
	Item: ComponentType<NestingProps>;
}

/** ListControl edits a list, one item per row. */
export function ListControl({ plan, value, onChange, pointer, root, Form, Item }: ListControlProps) {
	const items = Array.isArray(value) ? (value as readonly Json[]) : [];
	const put = (next: Json[]) => onChange(next.length > 0 ? next : undefined);
	const item: FieldPlan = plan.items ?? { name: "", label: "", kind: "any", required: true };
	return (
		<FieldContext value={null}>
			<fieldset aria-label={plan.label} className="flex min-w-0 flex-col gap-1.5">
				{items.map((element, i) => {
					const label = `${plan.label} ${i + 1}`;
					return (
						// biome-ignore lint/suspicious/noArrayIndexKey: list items have no identity besides their position
						<div key={i} data-pointer={`${pointer}/${i}`} className="flex items-start gap-1">
							<div className="min-w-0 flex-1">
								<Item
									plan={{ ...item, label }}
									value={element}
									pointer={`${pointer}/${i}`}
									root={root}
									Form={Form}
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
