<<<<<<<< HEAD:web/dist/assets/link-BzBtU6p4.js
import{k as e}from"./index-CeS7YSfc.js";import{t}from"./class-hZG6twJP.js";import{t as n}from"./jsx-runtime-Wy9s6hX0.js";var r=n(),i=(n=>{let{plain:i,className:a,...o}=n;return(0,r.jsx)(e,{...o,className:t(i?`hover:underline`:`text-accent hover:underline`,a)})});export{i as t};
========
import{k as e}from"./index-Cwhag2XV.js";import{t}from"./class-hZG6twJP.js";import{t as n}from"./jsx-runtime-Wy9s6hX0.js";var r=n(),i=(n=>{let{plain:i,className:a,...o}=n;return(0,r.jsx)(e,{...o,className:t(i?`hover:underline`:`text-accent hover:underline`,a)})});export{i as t};
>>>>>>>> 935365a (dashboard: rebuild):web/dist/assets/link-uWwbu-VQ.js
