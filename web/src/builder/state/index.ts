export { Editor } from "./editor";
export * from "./hooks";
export { type Problem, pointerOf } from "./problem";
export type { Snapshot } from "./snapshot";
export type { Side, State, Target, View } from "./state";
