/**
 * focusField begins in the first field of a dialog, or with the dialog itself: the
 * button that closes it comes first, but is not what a person came for.
 */
export function focusField(event: Event): void {
	event.preventDefault();
	const content = event.currentTarget as HTMLElement;
	const field = content.querySelector<HTMLElement>(
		"[autofocus], input:not([type=hidden]), textarea, select, [data-autofocus]",
	);
	(field ?? content).focus();
}

/** The looks that overlays share. */
export const panel = "rounded-8 border border-border bg-surface text-text shadow-lift outline-none animate-appear";
export const scrim = "fixed inset-0 z-40 bg-scrim animate-appear";
