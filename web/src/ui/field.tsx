import { Switch as RadixSwitch } from "radix-ui";
import {
	createContext,
	type InputHTMLAttributes,
	type ReactNode,
	type Ref,
	type SelectHTMLAttributes,
	type TextareaHTMLAttributes,
	useContext,
	useId,
} from "react";
import { cx } from "./class";
import { ChevronDownIcon } from "./icons";
import { sentence } from "./sentence";

interface Wiring {
	id: string;
	describedBy?: string;
	invalid: boolean;
	required: boolean;
}

/** FieldContext is overridden by controls that consist of several: each gets its own wiring, or null for none. */
export const FieldContext = createContext<Wiring | null>(null);

export interface FieldProps {
	label: ReactNode;
	/** One sentence below the control. */
	hint?: ReactNode;
	/** The message from the API: `error?.field("/name")`. */
	error?: string;
	required?: boolean;
	/** Shown next to the label, for additional actions. */
	aside?: ReactNode;
	children: ReactNode;
	className?: string;
}

/** Field provides the label, hint and error for the control inside it. */
export function Field({ label, hint, error, required = false, aside, children, className }: FieldProps) {
	const id = useId();
	const describedBy = [error && `${id}-error`, hint && `${id}-hint`].filter(Boolean).join(" ") || undefined;
	return (
		<div className={cx("flex min-w-0 flex-col gap-1", className)}>
			<div className="flex min-w-0 items-baseline gap-2">
				<label htmlFor={id} className="min-w-0 flex-1 font-medium break-words">
					{label}
					{!required || <span className="font-normal text-muted"> (required)</span>}
				</label>
				{aside}
			</div>
			<FieldContext value={{ id, describedBy, invalid: Boolean(error), required }}>{children}</FieldContext>
			{error && (
				<p id={`${id}-error`} className="text-12 break-words text-failed">
					{sentence(error)}
				</p>
			)}
			{hint && (
				<p id={`${id}-hint`} className="text-12 text-muted">
					{hint}
				</p>
			)}
		</div>
	);
}

/** useField returns the wiring for a custom control inside a Field. */
export function useField() {
	const field = useContext(FieldContext);
	if (!field) return {};
	return {
		id: field.id,
		"aria-describedby": field.describedBy,
		"aria-invalid": field.invalid || undefined,
		"aria-required": field.required || undefined,
	};
}

export const control =
	"w-full min-w-0 rounded-6 border border-control bg-surface px-2 text-text outline-offset-0 disabled:opacity-50 aria-invalid:border-failed";

export function TextInput({
	className,
	...rest
}: InputHTMLAttributes<HTMLInputElement> & { ref?: Ref<HTMLInputElement> }) {
	return <input type="text" autoComplete="off" {...useField()} {...rest} className={cx(control, "h-8", className)} />;
}

export function TextArea({
	className,
	...rest
}: TextareaHTMLAttributes<HTMLTextAreaElement> & { ref?: Ref<HTMLTextAreaElement> }) {
	return <textarea rows={4} {...useField()} {...rest} className={cx(control, "py-1.5", className)} />;
}

export interface NativeSelectProps extends SelectHTMLAttributes<HTMLSelectElement> {
	ref?: Ref<HTMLSelectElement>;
	options: { value: string; label: string; disabled?: boolean }[];
}

export function NativeSelect({ options, className, ...rest }: NativeSelectProps) {
	return (
		<span className={cx("relative inline-flex", className ?? "w-full")}>
			<select {...useField()} {...rest} className={cx(control, "h-8 appearance-none truncate pr-7")}>
				{options.map((option) => (
					<option key={option.value} value={option.value} disabled={option.disabled}>
						{option.label}
					</option>
				))}
			</select>
			<ChevronDownIcon className="pointer-events-none absolute top-2 right-2 text-muted" />
		</span>
	);
}

export interface CheckboxProps extends Omit<InputHTMLAttributes<HTMLInputElement>, "type"> {
	/** Shown next to the box. Without it, set aria-label. */
	label?: ReactNode;
	hint?: ReactNode;
}

export function Checkbox({ label, hint, className, ...rest }: CheckboxProps) {
	const id = useId();
	const box = (
		<input
			type="checkbox"
			{...rest}
			id={rest.id ?? id}
			aria-describedby={hint ? `${id}-hint` : undefined}
			className="size-4 shrink-0 accent-accent"
		/>
	);
	if (!label) return box;
	return (
		<div className={cx("flex items-start gap-2", className)}>
			<span className="flex h-5 items-center">{box}</span>
			<span className="min-w-0">
				<label htmlFor={rest.id ?? id}>{label}</label>
				{hint && (
					<p id={`${id}-hint`} className="text-12 text-muted">
						{hint}
					</p>
				)}
			</span>
		</div>
	);
}

export interface SwitchProps {
	/** Shown next to the switch. */
	label: ReactNode;
	checked: boolean;
	onChange: (checked: boolean) => void;
	disabled?: boolean;
	/** Only for screen readers. */
	labelHidden?: boolean;
}

export function Switch({ label, checked, onChange, disabled, labelHidden }: SwitchProps) {
	const id = useId();
	return (
		<span className="inline-flex items-center gap-2">
			<RadixSwitch.Root
				id={id}
				checked={checked}
				onCheckedChange={onChange}
				disabled={disabled}
				className="inline-flex h-5 w-9 shrink-0 items-center rounded-full bg-control px-0.5 disabled:opacity-50 data-[state=checked]:bg-accent"
			>
				<RadixSwitch.Thumb className="size-4 rounded-full bg-surface transition-transform data-[state=checked]:translate-x-4" />
			</RadixSwitch.Root>
			<label htmlFor={id} className={labelHidden ? "sr-only" : undefined}>
				{label}
			</label>
		</span>
	);
}
