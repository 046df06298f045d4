import { Link as RouterLink } from "@tanstack/react-router";
import type { ComponentProps } from "react";
import { cx } from "./class";

/** Link goes to a page of the dashboard. Inside lists use `plain`, which leaves the look to the row. */
export const Link = ((props: ComponentProps<typeof RouterLink> & { plain?: boolean }) => {
	const { plain, className, ...rest } = props;
	return (
		<RouterLink
			{...rest}
			className={cx(plain ? "hover:underline" : "text-accent hover:underline", className as string)}
		/>
	);
}) as unknown as LinkComponent;

type LinkComponent = typeof RouterLink;
