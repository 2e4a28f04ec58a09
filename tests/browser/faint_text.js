// Which text of the page stands out too little: the contrast ratio of WCAG 2.2 (1.4.3) for every
// piece of text that is seen, its colour against the backgrounds under it, mixed where they let
// something through.  Text over a picture or a gradient is left out, and so is text in SVG.
() => {
  // colours on their way from the light page to the dark one are at neither end
  for (const each of document.getAnimations()) each.finish();
  const parse = (colour) => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const known = new Map();
  const rgba = (colour) => {
    if (!known.has(colour)) known.set(colour, parse(colour));
    return known.get(colour);
  };
  const over = (top, under) => top.slice(0, 3)
    .map((part, k) => part * top[3] + under[k] * (1 - top[3])).concat(1);
  const luminance = (colour) => {
    const [r, g, b] = colour.slice(0, 3).map((part) => {
      const s = part / 255;
      return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const background = (element) => {
    const layers = [];
    for (let each = element; each; each = each.parentElement) {
      const style = getComputedStyle(each);
      if (style.backgroundImage !== "none") return null;
      layers.push(rgba(style.backgroundColor));
    }
    return layers.reverse().reduce((under, top) => over(top, under), [255, 255, 255, 1]);
  };
  const faint = [];
  let measured = 0;
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim();
    const element = walker.currentNode.parentElement;
    const unread = "svg, script, style, noscript, .katex-mathml, :disabled, [aria-disabled=true]";
    if (!text || element.closest(unread)) continue;
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const box = element.getBoundingClientRect();
    if (box.width < 2 || box.height < 2) continue;  // for screen readers only
    const style = getComputedStyle(element);
    const under = background(element);
    if (!under) continue;
    let opacity = 1;
    for (let each = element; each; each = each.parentElement)
      opacity *= Number(getComputedStyle(each).opacity);
    const colour = rgba(style.color);
    const ink = over([...colour.slice(0, 3), colour[3] * opacity], under);
    const [light, dark] = [luminance(ink), luminance(under)].sort((a, b) => b - a);
    const ratio = (light + 0.05) / (dark + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    measured += 1;
    if (ratio < (large ? 3 : 4.5))
      faint.push(`${ratio.toFixed(2)}: ${text.slice(0, 40)} (${element.tagName}.${element.className})`);
  }
  return { measured, faint };
}
