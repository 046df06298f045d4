import { Slot } from "radix-ui";
import type { ButtonHTMLAttributes, ReactNode, Ref } from "react";
import { cx } from "./class";
import type { Icon } from "./icons";
import { Tooltip } from "./tooltip";

type Kind = "primary" | "secondary" | "quiet" | "danger";

const kinds: Record<Kind, string> = {
	primary: "bg-accent text-on-accent hover:bg-[color-mix(in_srgb,var(--accent)_88%,var(--text))]",
	secondary: "border border-control/60 bg-surface text-text hover:bg-sunken",
	quiet: "text-muted hover:bg-sunken hover:text-text",
	danger: "bg-failed text-on-danger hover:bg-[color-mix(in_srgb,var(--failed)_88%,var(--text))]",
};

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
	kind?: Kind;
	icon?: Icon;
	/** Shows a spinner and disables the button. */
	busy?: boolean;
	/** Applies the style to the child, such as a Link. */
	asChild?: boolean;
	small?: boolean;
	ref?: Ref<HTMLButtonElement>;
}

const shape =
	"inline-flex shrink-0 items-center justify-center gap-2 rounded-6 font-medium whitespace-nowrap select-none disabled:cursor-not-allowed disabled:opacity-50 aria-disabled:cursor-not-allowed aria-disabled:opacity-50";

export function Button({
	kind = "secondary",
	icon: Shape,
	busy,
	asChild,
	small,
	className,
	children,
	...rest
}: ButtonProps) {
	const look = cx(shape, small ? "h-7 px-2 text-12" : "h-8 px-3", kinds[kind], className);
	if (asChild) {
		return (
			<Slot.Root className={look} {...rest}>
				{children}
			</Slot.Root>
		);
	}
	return (
		<button type="button" className={look} aria-busy={busy || undefined} {...rest} disabled={busy || rest.disabled}>
			{busy ? <Spinner /> : Shape && <Shape />}
			{children}
		</button>
	);
}

export interface IconButtonProps extends Omit<ButtonHTMLAttributes<HTMLButtonElement>, "aria-label"> {
	icon: Icon;
	/** Read by screen readers and shown as a tooltip. */
	label: string;
	kind?: Kind;
	small?: boolean;
	ref?: Ref<HTMLButtonElement>;
}

export function IconButton({ icon: Shape, label, kind = "quiet", small, className, ...rest }: IconButtonProps) {
	return (
		<Tooltip text={label}>
			<button
				type="button"
				aria-label={label}
				className={cx(shape, small ? "size-7" : "size-8", kinds[kind], className)}
				{...rest}
			>
				<Shape />
			</button>
		</Tooltip>
	);
}

export function Spinner({ size = 14 }: { size?: number }): ReactNode {
	return (
		<svg width={size} height={size} viewBox="0 0 16 16" fill="none" className="animate-turn" aria-hidden="true">
			<path d="M8 2a6 6 0 1 1-5.2 3" stroke="currentColor" strokeWidth={2} strokeLinecap="round" />
		</svg>
	);
}
