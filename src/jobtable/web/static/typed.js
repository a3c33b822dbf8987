// Input that was typed and not sent yet.

export function isEdited(field) {
  if (field.matches("select")) return [...field.options].some((option) => option.selected !== option.defaultSelected);
  return field.matches("input, textarea") && field.value !== field.defaultValue;
}

export function hasTyped() {
  return [...document.querySelectorAll("main form :is(input, select, textarea)")].some(isEdited);
}
