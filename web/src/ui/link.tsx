import { type LinkComponent, Link as RouterLink } from "@tanstack/react-router";
import type { ComponentProps, ReactNode } from "react";
import { cx } from "./class";

type Anchor = (props: ComponentProps<"a"> & { plain?: boolean }) => ReactNode;

/** Link navigates within the dashboard. Inside lists use `plain`, which leaves the style to the row. */
export const Link = ((props: ComponentProps<typeof RouterLink> & { plain?: boolean }) => {
	const { plain, className, ...rest } = props;
	return (
		<RouterLink
			{...rest}
			className={cx(plain ? "hover:underline" : "text-accent hover:underline", className as string)}
		/>
	);
}) as unknown as LinkComponent<Anchor>;
