import { useState } from "react";
import { spans } from "@/shared/workflow/expression/template";
import { Field } from "@/ui/field";
import { ExpressionField } from "../expression/field";
import { ForeignHint } from "../expression/foreign-hint";
import { useProblem } from "./context";
import { Control } from "./control";
import type { FieldPlan } from "./plan";
import type { NestingProps } from "./props";

/** Field kinds that contain fields of their own, which show their own problems. */
const nested = new Set(["object", "map", "list", "variants", "any", "fields"]);

/** SchemaField is one field of a form: a plain control or an expression editor. */
export function SchemaField(props: NestingProps) {
	const { plan, value, onChange, pointer, expressions = true } = props;
	const bare = plan.kind === "expression";
	// There is no plain way to write a file.
	const file = plan.kind === "file";
	const literal = plan.kind === "code" || plan.literal;
	const offered = (expressions === "text" ? plan.kind === "text" : expressions) && !bare && !file && !literal;
	const dynamic = offered && typeof value === "string" && spans(value).length > 0;
	// A field that contained an expression stays an expression editor while it is rewritten.
	const [wanted, setWanted] = useState(dynamic);
	if (dynamic && !wanted) setWanted(true);
	const [typing, setTyping] = useState(false);
	const expression = bare || file || wanted;
	const error = useProblem(pointer, expression || !nested.has(plan.kind));
	const toggle = () => {
		setTyping(true);
		if (!expression) {
			setWanted(true);
			if (typeof value !== "string") onChange(value === undefined ? undefined : `\${{ ${JSON.stringify(value)} }}`);
			return;
		}
		setWanted(false);
		if (dynamic) onChange(undefined);
	};
	return (
		<div data-pointer={pointer} className="flex min-w-0 flex-col gap-1">
			<Field
				label={plan.label}
				required={plan.required}
				hint={plan.hint}
				error={error}
				aside={offered && plan.kind !== "object" && <Mode expression={expression} plan={plan} onToggle={toggle} />}
			>
				{expression ? (
					<ExpressionField
						label={plan.label}
						value={typeof value === "string" ? value : ""}
						onChange={(text) => onChange(text === "" ? undefined : text)}
						pointer={pointer}
						form={bare ? "bare" : "template"}
						lines={plan.kind === "lines" || plan.kind === "any"}
						placeholder={plan.placeholder ?? (file ? "${{ trigger.payload.file }}" : undefined)}
						autoFocus={typing}
					/>
				) : (
					<Control
						{...props}
						onChange={(next) => {
							setTyping(typeof next === "string");
							onChange(next);
						}}
					/>
				)}
			</Field>
			{(expression || (offered && !nested.has(plan.kind))) && (
				<ForeignHint
					value={value}
					onChange={(text) => {
						setTyping(true);
						onChange(text);
					}}
				/>
			)}
		</div>
	);
}

function Mode({ expression, plan, onToggle }: { expression: boolean; plan: FieldPlan; onToggle: () => void }) {
	return (
		<button
			type="button"
			onClick={onToggle}
			aria-label={expression ? `${plan.label}: use a plain value` : `${plan.label}: use an expression`}
			className="shrink-0 rounded-6 px-1 text-12 text-muted hover:text-accent"
		>
			{expression ? "Plain value" : "Expression"}
		</button>
	);
}
