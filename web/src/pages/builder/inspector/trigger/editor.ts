import type { ComponentType } from "react";
import type { Trigger } from "@/shared/workflow/model";
import type { SchemaFormProps } from "../form/props";

interface PartProps {
	readonly trigger: Trigger;
	readonly pointer: string;
}

/** How the settings of a type of trigger differ from the form that its schema gives. */
export interface TriggerEditor {
	/** Edits all settings, in place of the form that the schema gives. */
	readonly Form?: ComponentType<PartProps>;
	/** The fields in display order. */
	readonly order?: readonly string[];
	/** The fields that Before or After edit. */
	readonly without?: readonly string[];
	/** The fields that are expressions without delimiters. */
	readonly bare?: readonly string[];
	/** The fields that may contain expressions. */
	readonly expressions?: SchemaFormProps["expressions"];
	/** Shown before the fields. */
	readonly Before?: ComponentType<PartProps>;
	/** Shown after the fields. */
	readonly After?: ComponentType<PartProps>;
	/** A section above the status. */
	readonly Section?: ComponentType<{ readonly trigger: Trigger }>;
	/** Nothing fires it, so it has no settings and no status. */
	readonly neverFires?: boolean;
}
