/** The looks that overlays share. */
export const panel = "rounded-8 border border-border bg-surface text-text shadow-lift outline-none animate-appear";
export const scrim = "fixed inset-0 z-40 bg-scrim animate-appear";
