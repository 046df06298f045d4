import { useEffect, useRef, useState } from "react";
import { cx } from "./class";
import { TextInput } from "./field";
import { SearchIcon } from "./icons";

export interface SearchInputProps {
	label: string;
	placeholder: string;
	value: string;
	/** Called when typing pauses, not on every keystroke. */
	onChange: (value: string) => void;
	maxLength?: number;
	className?: string;
}

/** SearchInput is the search field of a list. */
export function SearchInput({ label, placeholder, value, onChange, maxLength = 200, className }: SearchInputProps) {
	const [text, setText] = useState(value);
	const [known, setKnown] = useState(value);
	if (known !== value) {
		setKnown(value);
		setText(value);
	}
	const latest = useRef(onChange);
	useEffect(() => {
		latest.current = onChange;
	});
	useEffect(() => {
		if (text === value) return undefined;
		const timer = setTimeout(() => latest.current(text), 250);
		return () => clearTimeout(timer);
	}, [text, value]);
	return (
		<span className={cx("relative", className)}>
			<SearchIcon className="pointer-events-none absolute top-2 left-2 text-muted" />
			<TextInput
				type="search"
				aria-label={label}
				placeholder={placeholder}
				maxLength={maxLength}
				className="pl-8"
				value={text}
				onChange={(event) => setText(event.target.value)}
			/>
		</span>
	);
}
