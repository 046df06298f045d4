import { icon } from "@/ui/icons";

export const DatabaseIcon = icon(
	"M13 4c0 1.1-2.2 2-5 2S3 5.1 3 4s2.2-2 5-2 5 .9 5 2Z",
	"M3 4v8c0 1.1 2.2 2 5 2s5-.9 5-2V4M3 8c0 1.1 2.2 2 5 2s5-.9 5-2",
);
export const PinIcon = icon("M6 2.5h4M6.5 2.5v4L4.5 9h7l-2-2.5v-4M8 9v4.5");
export const BeakerIcon = icon("M6 2.5h4M6.8 2.5v4L3.4 12a1 1 0 0 0 .9 1.5h7.4a1 1 0 0 0 .9-1.5L9.2 6.5v-4M5 10h6");
