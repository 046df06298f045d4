/**
 * focusFirstField focuses the first field of a dialog, or the dialog itself. Otherwise the
 * close button, which comes first, would get the focus.
 */
export function focusFirstField(event: Event): void {
	event.preventDefault();
	const content = event.currentTarget as HTMLElement;
	const field = content.querySelector<HTMLElement>(
		"[autofocus], input:not([type=hidden]), textarea, select, [data-autofocus]",
	);
	(field ?? content).focus();
}

/** focusContent focuses the dialog itself. */
export function focusContent(event: Event): void {
	event.preventDefault();
	(event.currentTarget as HTMLElement).focus();
}

/** Styles that overlays share. */
export const panel = "rounded-8 border border-border bg-surface text-text shadow-lift outline-none animate-appear";
export const scrim = "fixed inset-0 z-40 bg-scrim animate-appear";
