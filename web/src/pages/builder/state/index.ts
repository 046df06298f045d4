export { Editor } from "./editor";
export * from "./hooks";
export type { Snapshot } from "./snapshot";
export type { Adding, Question, Side, State, Target, View } from "./state";
