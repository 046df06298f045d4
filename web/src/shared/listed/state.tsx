import { toApiError } from "@/api/error";
import { Button, IconButton, Spinner } from "@/ui/button";
import { cx } from "@/ui/class";
import { RetryIcon } from "@/ui/icons";
import { sentence } from "@/ui/sentence";
import type { Listing } from "./use-listing";

interface ListStateProps {
	listing: Listing;
	/** The label of the field. */
	name: string;
	searchable: boolean;
	/** What somebody has typed. */
	text: string;
	/** How many values are shown. */
	count: number;
	/** The list is that of an account. */
	refreshable: boolean;
}

/** ListState says what a list does not: that it is loading, why there is none, or that there are more values. */
export function ListState(props: ListStateProps) {
	const { listing, name, count, refreshable } = props;
	const { blocked, busy, error, refresh } = listing;
	if (error !== null) {
		return (
			<div role="alert" className="flex flex-col items-start gap-2 px-3 py-2">
				<p className="text-12 break-words text-failed">{sentence(toApiError(error).message)}</p>
				<Button small onClick={refresh}>
					Try again
				</Button>
			</div>
		);
	}
	const said = sayWhy(props);
	return (
		<div
			className={cx(
				"flex min-h-8 items-center gap-2 pr-1 pl-3",
				count > 0 && "border-t",
				!said && !refreshable && "sr-only",
			)}
		>
			{busy && <Spinner />}
			<p role="status" className="min-w-0 flex-1 py-1.5 text-12 break-words text-muted">
				{said}
			</p>
			{refreshable && blocked === undefined && !busy && (
				<IconButton small icon={RetryIcon} label={`Refresh the list of ${name}`} onClick={refresh} />
			)}
		</div>
	);
}

/** What there is to say about a list, if anything. */
function sayWhy({ listing, text, count, searchable }: ListStateProps): string | undefined {
	const { blocked, busy, list } = listing;
	if (blocked !== undefined) return `${blocked} You can also enter a value.`;
	if (busy) return "Loading…";
	if (count === 0 && text.trim() !== "") return `No entry matches “${text.trim()}”. It is used as you entered it.`;
	if (count === 0) return "The account has nothing to choose from.";
	if (!list) return undefined;
	if (!list.more) return count === 1 ? "1 entry" : `${count} entries`;
	return searchable ? "There are more. Type to search." : "There are more. You can enter any value.";
}
