<<<<<<<< HEAD:web/dist/assets/link-BPUUcZn_.js
import{k as e}from"./index-BmQVFYU3.js";import{t}from"./class-hZG6twJP.js";import{t as n}from"./jsx-runtime-Wy9s6hX0.js";var r=n(),i=(n=>{let{plain:i,className:a,...o}=n;return(0,r.jsx)(e,{...o,className:t(i?`hover:underline`:`text-accent hover:underline`,a)})});export{i as t};
========
import{k as e}from"./index-JTn9d0FY.js";import{t}from"./class-hZG6twJP.js";import{t as n}from"./jsx-runtime-Wy9s6hX0.js";var r=n(),i=(n=>{let{plain:i,className:a,...o}=n;return(0,r.jsx)(e,{...o,className:t(i?`hover:underline`:`text-accent hover:underline`,a)})});export{i as t};
>>>>>>>> 7367c419 (web: choose the services of a shared connection):web/dist/assets/link-Drj4kjJN.js
