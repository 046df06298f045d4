import { Dialog as Radix } from "radix-ui";
import { type FormEvent, type ReactNode, useState } from "react";
import { toApiError } from "@/api/error";
import { Button, IconButton } from "./button";
import { cx } from "./class";
import { CloseIcon } from "./icons";
import { focusContent, focusFirstField, panel, scrim } from "./overlay";
import { ErrorNote } from "./states";

export interface DialogProps {
	open: boolean;
	onOpenChange: (open: boolean) => void;
	title: ReactNode;
	/** One sentence below the title. */
	description?: ReactNode;
	children?: ReactNode;
	/** Buttons at the bottom right, the primary one last. */
	actions?: ReactNode;
	/** Makes the body a form with this submit handler. */
	onSubmit?: () => void;
	width?: "small" | "medium" | "large";
	/** A click outside does not close it, so that typed text is not lost. */
	guarded?: boolean;
	/** Only its own actions close it, because its content cannot be shown again. */
	locked?: boolean;
}

const preventClose = (event: Event) => event.preventDefault();

const widths = { small: "max-w-[400px]", medium: "max-w-[560px]", large: "max-w-[840px]" };

export function Dialog({
	open,
	onOpenChange,
	title,
	description,
	children,
	actions,
	onSubmit,
	width = "medium",
	guarded,
	locked,
}: DialogProps) {
	const Body = onSubmit ? "form" : "div";
	const submit = onSubmit && {
		noValidate: true,
		onSubmit: (event: FormEvent) => {
			event.preventDefault();
			event.stopPropagation();
			onSubmit();
		},
	};
	return (
		<Radix.Root open={open} onOpenChange={onOpenChange}>
			<Radix.Portal>
				<Radix.Overlay className={scrim} />
				<Radix.Content
					className={cx(
						panel,
						"fixed top-1/2 left-1/2 z-40 flex max-h-[calc(100dvh-32px)] w-[calc(100vw-32px)] -translate-x-1/2 -translate-y-1/2 flex-col",
						widths[width],
					)}
					onOpenAutoFocus={focusFirstField}
					onInteractOutside={guarded || locked ? preventClose : undefined}
					onEscapeKeyDown={locked ? preventClose : undefined}
					data-locked={locked || undefined}
					{...(description ? {} : { "aria-describedby": undefined })}
				>
					<div className="flex items-start gap-4 px-6 pt-5 pb-2">
						<div className="min-w-0 flex-1">
							<Radix.Title className="text-16 font-semibold break-words">{title}</Radix.Title>
							{description && <Radix.Description className="mt-1 text-muted">{description}</Radix.Description>}
						</div>
						{!locked && (
							<Radix.Close asChild>
								<IconButton icon={CloseIcon} label="Close" className="-mt-1 -mr-2" />
							</Radix.Close>
						)}
					</div>
					<Body {...submit} className="flex min-h-0 flex-1 flex-col">
						<div className="flex min-h-0 flex-col gap-4 overflow-y-auto px-6 py-2 last:pb-6">{children}</div>
						{actions && <div className="flex flex-wrap justify-end gap-2 px-6 pt-3 pb-5">{actions}</div>}
					</Body>
				</Radix.Content>
			</Radix.Portal>
		</Radix.Root>
	);
}

export interface ConfirmDialogProps {
	open: boolean;
	onOpenChange: (open: boolean) => void;
	title: ReactNode;
	/** What will be deleted, and what will not. */
	children?: ReactNode;
	/** The label of the button, such as "Delete workflow". */
	verb: string;
	danger?: boolean;
	/** The call. The dialog waits for it and shows its error. */
	onConfirm: () => Promise<unknown>;
}

export function ConfirmDialog({ open, onOpenChange, title, children, verb, danger, onConfirm }: ConfirmDialogProps) {
	const [busy, setBusy] = useState(false);
	const [error, setError] = useState<unknown>();
	const change = (next: boolean) => {
		if (busy) return;
		setError(undefined);
		onOpenChange(next);
	};
	const confirm = async () => {
		setBusy(true);
		setError(undefined);
		try {
			await onConfirm();
			onOpenChange(false);
		} catch (thrown) {
			setError(toApiError(thrown));
		} finally {
			setBusy(false);
		}
	};
	return (
		<Dialog
			open={open}
			onOpenChange={change}
			title={title}
			width="small"
			actions={
				<>
					<Button onClick={() => change(false)} disabled={busy}>
						Cancel
					</Button>
					<Button kind={danger ? "danger" : "primary"} busy={busy} onClick={confirm}>
						{verb}
					</Button>
				</>
			}
		>
			{children && <div className="text-muted">{children}</div>}
			{error !== undefined && <ErrorNote error={error} />}
		</Dialog>
	);
}

export interface SheetProps {
	open: boolean;
	onOpenChange: (open: boolean) => void;
	title: ReactNode;
	description?: ReactNode;
	children: ReactNode;
	actions?: ReactNode;
	side?: "right" | "left";
	width?: number;
	/** The initial focus: the first field, or the sheet itself if its content focuses a field later. */
	focus?: "field" | "sheet";
}

/** Sheet is a side panel: details of a row, or the navigation on narrow screens. */
export function Sheet({
	open,
	onOpenChange,
	title,
	description,
	children,
	actions,
	side = "right",
	width = 480,
	focus = "field",
}: SheetProps) {
	return (
		<Radix.Root open={open} onOpenChange={onOpenChange}>
			<Radix.Portal>
				<Radix.Overlay className={scrim} />
				<Radix.Content
					onOpenAutoFocus={focus === "field" ? focusFirstField : focusContent}
					style={{ width: `min(100vw, ${width}px)` }}
					className={cx(
						"fixed inset-y-0 z-40 flex animate-appear flex-col border-border bg-surface shadow-lift outline-none",
						side === "right" ? "right-0 border-l" : "left-0 border-r",
					)}
					{...(description ? {} : { "aria-describedby": undefined })}
				>
					<div className="flex items-start gap-4 border-b px-6 py-4">
						<div className="min-w-0 flex-1">
							<Radix.Title className="text-16 font-semibold break-words">{title}</Radix.Title>
							{description && <Radix.Description className="text-muted">{description}</Radix.Description>}
						</div>
						{actions}
						<Radix.Close asChild>
							<IconButton icon={CloseIcon} label="Close" className="-mr-2" />
						</Radix.Close>
					</div>
					<div className="min-h-0 flex-1 overflow-y-auto p-6">{children}</div>
				</Radix.Content>
			</Radix.Portal>
		</Radix.Root>
	);
}
