import type { TriggerEditor } from "../editor";
import { ServiceForm } from "./form";

/** The settings of a type that belongs to a service are in its manifest. */
export const service: TriggerEditor = { Form: ServiceForm };
