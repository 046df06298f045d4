import { DropdownMenu as Radix } from "radix-ui";
import type { ReactNode } from "react";
import { cx } from "./class";
import { CheckIcon, type Icon } from "./icons";
import { panel } from "./overlay";

/** Menu opens below its trigger, which must be a single element that accepts a ref. */
export function Menu({
	trigger,
	children,
	align = "end",
}: {
	trigger: ReactNode;
	children: ReactNode;
	align?: "start" | "end";
}) {
	return (
		<Radix.Root modal={false}>
			<Radix.Trigger asChild>{trigger}</Radix.Trigger>
			<Radix.Portal>
				<Radix.Content
					align={align}
					sideOffset={4}
					collisionPadding={8}
					className={cx(
						panel,
						"z-50 max-h-(--radix-dropdown-menu-content-available-height) max-w-80 min-w-44 overflow-y-auto p-1",
					)}
				>
					{children}
				</Radix.Content>
			</Radix.Portal>
		</Radix.Root>
	);
}

const row =
	"flex h-8 w-full cursor-default items-center gap-2 rounded-6 px-2 outline-none select-none data-disabled:opacity-50 data-highlighted:bg-sunken";

export interface MenuItemProps {
	icon?: Icon;
	children: ReactNode;
	onSelect?: () => void;
	danger?: boolean;
	disabled?: boolean;
	/** Shown on the right, such as "Mod+K". */
	hint?: ReactNode;
	/** Applies the style to the child, such as a Link. */
	asChild?: boolean;
}

export function MenuItem({ icon: Shape, children, onSelect, danger, disabled, hint, asChild }: MenuItemProps) {
	if (asChild) {
		return (
			<Radix.Item asChild className={row} onSelect={onSelect}>
				{children}
			</Radix.Item>
		);
	}
	return (
		<Radix.Item className={cx(row, danger && "text-failed")} onSelect={onSelect} disabled={disabled}>
			{Shape && <Shape className={danger ? undefined : "text-muted"} />}
			<span className="min-w-0 flex-1 truncate">{children}</span>
			{hint && <span className="text-12 text-muted">{hint}</span>}
		</Radix.Item>
	);
}

export function MenuCheck({
	checked,
	onChange,
	children,
}: {
	checked: boolean;
	onChange: (checked: boolean) => void;
	children: ReactNode;
}) {
	return (
		<Radix.CheckboxItem
			className={row}
			checked={checked}
			onCheckedChange={onChange}
			onSelect={(event) => event.preventDefault()}
		>
			<span className="inline-flex size-4">
				<Radix.ItemIndicator>
					<CheckIcon />
				</Radix.ItemIndicator>
			</span>
			<span className="min-w-0 flex-1 truncate">{children}</span>
		</Radix.CheckboxItem>
	);
}

export function MenuLabel({ children }: { children: ReactNode }) {
	return <Radix.Label className="truncate px-2 py-1 text-12 text-muted">{children}</Radix.Label>;
}

export function MenuLine() {
	return <Radix.Separator className="-mx-1 my-1 h-px bg-border" />;
}
