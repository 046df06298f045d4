import { Popover as Radix } from "radix-ui";
import type { ReactNode } from "react";
import { cx } from "./class";
import { panel } from "./overlay";

export interface PopoverProps {
	trigger: ReactNode;
	/** Read by screen readers. */
	label: string;
	children: ReactNode;
	open?: boolean;
	onOpenChange?: (open: boolean) => void;
	align?: "start" | "center" | "end";
	className?: string;
}

export function Popover({ trigger, label, children, open, onOpenChange, align = "start", className }: PopoverProps) {
	return (
		<Radix.Root open={open} onOpenChange={onOpenChange}>
			<Radix.Trigger asChild>{trigger}</Radix.Trigger>
			<Radix.Portal>
				<Radix.Content
					align={align}
					sideOffset={4}
					collisionPadding={8}
					aria-label={label}
					className={cx(
						panel,
						"z-50 max-h-(--radix-popover-content-available-height) max-w-(--radix-popover-content-available-width) overflow-y-auto p-4",
						className,
					)}
				>
					{children}
				</Radix.Content>
			</Radix.Portal>
		</Radix.Root>
	);
}
