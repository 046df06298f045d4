import { type FormEvent, useState } from "react";
import { toApiError } from "@/api/error";
import { type Member, memberSchema, unlisted } from "@/shared/listed/model";
import { type Listing, useListing } from "@/shared/listed/use-listing";
import { isObject, type Json, type JsonObject, pointer as pointerTo } from "@/shared/workflow/model";
import { Button, IconButton, Spinner } from "@/ui/button";
import { FieldContext, TextInput } from "@/ui/field";
import { CloseIcon, PlusIcon, RetryIcon } from "@/ui/icons";
import { sentence } from "@/ui/sentence";
import { keepsFocus } from "@/ui/suggest";
import { ValueControl } from "../form/any";
import { MapControl } from "../form/map";
import type { NestingProps } from "../form/props";

/**
 * FieldsControl edits an object whose members the account of the connection has, such as the columns of a sheet.
 * Without a list of them it is the editor for any object.
 */
export default function FieldsControl(props: NestingProps) {
	const { plan, pointer } = props;
	const listing = useListing(plan, pointer, true);
	const present = listing.list?.fields ?? undefined;
	// While the list for other inputs is loading, the form stays as it is.
	const [last, setLast] = useState(present);
	if (present && present !== last) setLast(present);
	const members = present ?? (listing.busy ? last : undefined);
	// Somebody has begun to enter members by name, which a list that arrives must not interrupt.
	const [byName, setByName] = useState(false);
	return (
		<FieldContext value={null}>
			<fieldset aria-label={plan.label} className="flex min-w-0 flex-col gap-3">
				<FieldsState
					name={plan.label}
					listing={listing}
					count={members?.length}
					onShow={byName && members ? () => setByName(false) : undefined}
				/>
				{members && !byName ? (
					<Members {...props} members={members} />
				) : (
					// biome-ignore lint/a11y/noStaticElementInteractions: it only notices where the focus is
					<div
						onFocus={() => setByName(true)}
						onBlur={(event) => {
							if (!keepsFocus(event)) setByName(hasUnnamed(event.currentTarget));
						}}
					>
						<MapControl {...props} Value={ValueControl} />
					</div>
				)}
			</fieldset>
		</FieldContext>
	);
}

/** Whether a row of the editor for any object has no name yet: its value is not part of the object. */
function hasUnnamed(editor: HTMLElement): boolean {
	return [...editor.querySelectorAll<HTMLInputElement>("input[placeholder=Name]")].some(({ value }) => value === "");
}

interface FieldsStateProps {
	name: string;
	listing: Listing;
	count: number | undefined;
	/** Shows the listed fields, which are there but not shown. */
	onShow?: () => void;
}

/** FieldsState says where the fields come from, or why there are none. */
function FieldsState({ name, listing, count, onShow }: FieldsStateProps) {
	const { blocked, busy, error, refresh } = listing;
	if (error !== null && count === undefined) {
		return (
			<div role="alert" className="flex flex-wrap items-center gap-2 rounded-6 bg-failed-soft px-3 py-2">
				<p className="min-w-0 flex-1 basis-40 text-12 break-words text-failed">{sentence(toApiError(error).message)}</p>
				<Button small onClick={refresh}>
					Try again
				</Button>
			</div>
		);
	}
	const fields = count === 1 ? "1 field" : `${count} fields`;
	const said = blocked ?? (busy ? "Loading the fields…" : count === undefined ? "" : `${fields} in the account.`);
	return (
		<div className="flex min-h-6 items-center gap-2 text-12 text-muted">
			{busy && <Spinner />}
			<p role="status" className="min-w-0 flex-1 break-words">
				{blocked === undefined ? said : `${said} Then its fields are shown here.`}
			</p>
			{onShow && (
				<Button small kind="quiet" onClick={onShow}>
					Show {fields}
				</Button>
			)}
			{!busy && blocked === undefined && (
				<IconButton small icon={RetryIcon} label={`Refresh the fields of ${name}`} onClick={refresh} />
			)}
		</div>
	);
}

interface MembersProps extends NestingProps {
	members: readonly Member[];
}

/** Members shows a field for each listed member, and for each other one that the object has. */
function Members({ plan, value, onChange, pointer, expressions, Form, members }: MembersProps) {
	const object = isObject(value) ? value : {};
	// A member that is not listed stays while it is empty, until somebody removes it.
	const [added, setAdded] = useState<readonly string[]>([]);
	const others = [...new Set([...unlisted(members, object), ...added])].filter(
		(name) => !members.some((member) => member.name === name),
	);
	const set = (name: string, next: Json | undefined) => {
		if (next === undefined && others.includes(name)) setAdded([...new Set([...added, name])]);
		onChange(withMember(object, name, next) ?? (plan.required ? {} : undefined));
	};
	const remove = (name: string) => {
		setAdded(added.filter((other) => other !== name));
		onChange(withMember(object, name, undefined) ?? (plan.required ? {} : undefined));
	};
	const form = { value: object, pointer, onChange: set, expressions, all: true };
	return (
		<div className="flex min-w-0 flex-col gap-4 rounded-8 border bg-canvas p-3">
			<Form schema={memberSchema(members, object)} {...form} />
			{others.map((name) => (
				<div key={name} className="flex items-start gap-1">
					<div className="min-w-0 flex-1">
						<Form schema={memberSchema([otherMember(name)], object)} {...form} />
					</div>
					<IconButton small icon={CloseIcon} label={`Remove ${name}`} onClick={() => remove(name)} />
				</div>
			))}
			<AddMember
				taken={[...members.map(({ name }) => name), ...others]}
				onAdd={(name) => setAdded([...added, name])}
				pointer={pointer}
			/>
		</div>
	);
}

function otherMember(name: string): Member {
	return { name, title: name, type: "any", required: false, options: null };
}

/** The object with a member changed, or undefined if it has none left. */
function withMember(object: JsonObject, name: string, value: Json | undefined): JsonObject | undefined {
	if (value !== undefined) return { ...object, [name]: value };
	const { [name]: _, ...rest } = object;
	return Object.keys(rest).length > 0 ? rest : undefined;
}

interface AddMemberProps {
	taken: readonly string[];
	onAdd: (name: string) => void;
	/** Of the object. */
	pointer: string;
}

/** AddMember adds a member that is not listed, by its name. */
function AddMember({ taken, onAdd, pointer }: AddMemberProps) {
	const [name, setName] = useState<string>();
	if (name === undefined) {
		return (
			<Button small kind="quiet" className="self-start" icon={PlusIcon} onClick={() => setName("")}>
				Add another field
			</Button>
		);
	}
	const twice = taken.includes(name);
	const add = (event: FormEvent) => {
		event.preventDefault();
		if (name === "" || twice) return;
		onAdd(name);
		setName(undefined);
		const field = `[data-pointer="${CSS.escape(pointer + pointerTo(name))}"] input`;
		requestAnimationFrame(() => document.querySelector<HTMLElement>(field)?.focus());
	};
	return (
		<form className="flex flex-col gap-1" onSubmit={add}>
			<div className="flex gap-1">
				<TextInput
					aria-label="Name of the new field"
					aria-invalid={twice || undefined}
					placeholder="Name"
					autoFocus
					value={name}
					className="flex-1"
					onChange={(event) => setName(event.target.value)}
				/>
				<Button type="submit">Add</Button>
				<IconButton icon={CloseIcon} label="Cancel" onClick={() => setName(undefined)} />
			</div>
			{twice && <p className="text-12 text-failed">A field with this name already exists.</p>}
		</form>
	);
}
