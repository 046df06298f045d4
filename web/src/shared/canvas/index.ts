export { EdgeLine, type EdgeLineProps, edgePath } from "./edge-line";
export { FrameNode, type FrameNodeProps } from "./frame-node";
export { actionIcon } from "./icons";
export { PathLabel } from "./path-label";
export { Ports } from "./ports";
export { StartNode, TriggerNode, type TriggerNodeProps } from "./start-node";
export { Condition, StepNode, type StepNodeProps } from "./step-node";
export { bareExpression, formatDuration, frameWords, stepLook, triggerWords } from "./words";
