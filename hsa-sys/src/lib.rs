//! Raw HSA types and the table of ROCr functions resolved at run time.
