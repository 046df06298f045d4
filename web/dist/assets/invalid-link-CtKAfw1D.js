<<<<<<<< HEAD:web/dist/assets/invalid-link-CtKAfw1D.js
import{k as e}from"./index-CeS7YSfc.js";import{t}from"./button-CNrMy3l3.js";import{r as n}from"./use-sign-in-Pl5Jlw6U.js";import{t as r}from"./jsx-runtime-Wy9s6hX0.js";var i=r();function a({children:r}){return(0,i.jsx)(n,{title:`This link does not work`,lead:r,children:(0,i.jsx)(t,{asChild:!0,className:`w-full`,children:(0,i.jsx)(e,{to:`/sign-in`,children:`Go to sign in`})})})}export{a as t};
========
import{k as e}from"./index-Cwhag2XV.js";import{t}from"./button-CNrMy3l3.js";import{r as n}from"./use-sign-in-BL22miHt.js";import{t as r}from"./jsx-runtime-Wy9s6hX0.js";var i=r();function a({children:r}){return(0,i.jsx)(n,{title:`This link does not work`,lead:r,children:(0,i.jsx)(t,{asChild:!0,className:`w-full`,children:(0,i.jsx)(e,{to:`/sign-in`,children:`Go to sign in`})})})}export{a as t};
>>>>>>>> 935365a (dashboard: rebuild):web/dist/assets/invalid-link-D7oMT0vL.js
