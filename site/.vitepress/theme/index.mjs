// VitePress's own theme, with a few rules of style.
import DefaultTheme from "vitepress/theme";
import "./style.css";

export default DefaultTheme;
