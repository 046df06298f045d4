/** Logo is the product logo, in the colors of the theme. */
export function Logo({ size }: { size: number }) {
	return (
		<svg width={size} height={size} viewBox="0 0 32 32" aria-hidden="true">
			<rect width="32" height="32" rx="8" fill="var(--accent)" />
			<path
				d="M8 23h5v-5h5v-5h6"
				fill="none"
				stroke="var(--on-accent)"
				strokeWidth="3"
				strokeLinecap="round"
				strokeLinejoin="round"
			/>
			<circle cx="24" cy="8.5" r="2.5" fill="var(--on-accent)" />
		</svg>
	);
}
