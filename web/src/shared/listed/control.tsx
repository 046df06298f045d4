import { useContext, useState } from "react";
import type { Json } from "@/shared/workflow/model";
import { SuggestInput, type Suggestion } from "@/ui/suggest";
import { ListingContext } from "./context";
import type { ListedField } from "./field";
import { choiceOf, inputPath, matching, named, textOf, typed } from "./model";
import type { Choice } from "./schema";
import { ListState } from "./state";
import { type Listing, useListing } from "./use-listing";

interface ListedControlProps {
	plan: ListedField;
	value: Json | undefined;
	/** undefined removes the value. */
	onChange: (value: Json | undefined) => void;
	/** From the root of the document. */
	pointer: string;
}

/** ListedControl edits a value that can be chosen from a list: of the account of the connection, or a known one. */
export default function ListedControl({ plan, value, onChange, pointer }: ListedControlProps) {
	const [open, setOpen] = useState(false);
	const [text, setText] = useState<string | null>(null);
	// What was found by searching need not be in the list.
	const [found, setFound] = useState<{ choice: Choice; of: string }>();
	const owner = useContext(ListingContext);
	const shown = textOf(value);
	const listing = useChoices(plan, pointer, open || shown !== "", text ?? "");
	const { choices } = listing;
	const chosen = choiceOf(found?.of === listing.of ? [...choices, found.choice] : choices, value);
	const fitting = matching(choices, text ?? "");
	const exact = text === null ? undefined : named(choices, text);
	const byText = new Map(choices.map((choice) => [String(choice.value), choice]));
	return (
		<>
			<SuggestInput
				label={plan.label}
				value={shown}
				shown={chosen?.label}
				suggestions={fitting.map(suggestionOf)}
				typed={text}
				exact={exact && suggestionOf(exact)}
				placeholder={plan.placeholder}
				onOpenChange={setOpen}
				onType={(next) => {
					setText(next);
					owner?.setTyping(next === null ? null : inputPath(pointer, owner.pointer).replace(/\/.*/, ""));
					if (next !== null) onChange(typed(next, plan.whole !== undefined));
				}}
				onChoose={({ value: wanted }) => {
					const choice = byText.get(wanted);
					if (choice) setFound({ choice, of: listing.of });
					onChange(choice?.value);
				}}
			>
				<ListState
					listing={listing}
					name={plan.label}
					searchable={plan.listed?.searchable ?? false}
					text={text ?? ""}
					count={fitting.length}
					refreshable={plan.listed !== undefined}
				/>
			</SuggestInput>
			{!open && listing.complete && shown !== "" && !chosen && (
				<p className="text-12 break-words text-muted">“{shown}” is not in the list. It is used as it is.</p>
			)}
		</>
	);
}

function suggestionOf({ value, label }: Choice): Suggestion {
	return { value: String(value), label };
}

interface Choices extends Listing {
	readonly choices: readonly Choice[];
	/** The list has all values. */
	readonly complete: boolean;
}

/** useChoices returns the values to choose from. If the list is too long for that, the service searches it. */
function useChoices(plan: ListedField, pointer: string, wanted: boolean, text: string): Choices {
	const all = useListing(plan, pointer, wanted);
	const search = plan.listed?.searchable && all.list?.more ? text.trim() : "";
	const searched = useListing(plan, pointer, wanted && search !== "", search);
	if (plan.choices) return { ...all, busy: false, choices: plan.choices, complete: true };
	const choices = all.list?.options ?? [];
	if (search === "") return { ...all, choices, complete: all.list?.more === false && !all.busy };
	return { ...searched, choices: searched.list?.options ?? choices, complete: false };
}
